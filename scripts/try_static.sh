#!/usr/bin/env bash
# try_static.sh BINARY: the demo, service and records included, in a root that holds the binary and an empty folder
# alone. Without the right to make such a root it says so and tries the binary where it stands.
set -euo pipefail

binary=$(realpath "$1")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/data" "$root/proc" "$root/dev"
touch "$root/dev/null"
cp "$binary" "$root/tacit"

# What every system and container has: /proc, where the demo finds its own binary to start it, and /dev/null.
if unshare --user --map-root-user --mount --pid --fork true 2>/dev/null; then
  unshare --user --map-root-user --mount --pid --fork --kill-child \
    sh -c 'mount -t proc proc "$0/proc" 2>/dev/null || mount --rbind /proc "$0/proc"
           mount --bind /dev/null "$0/dev/null"
           exec chroot "$0" /tacit --json demo --rows 2000 --dir /data' "$root" >"$root/said"
  place="a root of its own"
else
  "$root/tacit" --json demo --rows 2000 --dir "$root/data" >"$root/said"
  place="this system, as no root of its own can be made"
fi
grep -q '"signed_by_both":1' "$root/said" || { cat "$root/said" >&2; exit 1; }
echo "the demo runs in $place"
