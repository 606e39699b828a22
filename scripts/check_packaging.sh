#!/usr/bin/env bash
# Whether systemd takes our units, and how far it locks the services in (an exposure of at most 2 of 10).
set -euo pipefail
cd "$(dirname "$0")/.."

command -v systemd-analyze >/dev/null || { echo "no systemd-analyze here: the unit is not checked"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for unit in tacit tacit-relay; do
  # The user and the binary are the administrator's to make.
  sed 's#/usr/local/bin/tacit#/bin/true#; s#^\(User\|Group\)=.*#\1=root#' "packaging/$unit.service" >"$folder/$unit.service"
  said=$(systemd-analyze verify "$folder/$unit.service" 2>&1) || { echo "$said" >&2; exit 1; }
  if [ -n "$said" ]; then
    echo "$said" >&2
    exit 1
  fi
  systemd-analyze security --offline=yes --threshold=20 --no-pager "packaging/$unit.service" | tail -n 1
done
