#!/usr/bin/env bash
# Whether systemd takes our unit, and how far it locks the service in (an exposure of at most 2 of 10).
set -euo pipefail
cd "$(dirname "$0")/.."

command -v systemd-analyze >/dev/null || { echo "no systemd-analyze here: the unit is not checked"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The user and the binary are the administrator's to make.
sed 's#/usr/local/bin/tacit#/bin/true#; s#^\(User\|Group\)=.*#\1=root#' packaging/tacit.service >"$folder/tacit.service"
said=$(systemd-analyze verify "$folder/tacit.service" 2>&1) || { echo "$said" >&2; exit 1; }
if [ -n "$said" ]; then
  echo "$said" >&2
  exit 1
fi
systemd-analyze security --offline=yes --threshold=20 --no-pager packaging/tacit.service | tail -n 1
