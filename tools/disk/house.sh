#!/usr/bin/env bash
# Many seeds of the house (crates/tacit-serve/tests/house), on a machine without cargo.
#
#     tools/disk/house.sh pack              puts the test, the disk and this script into dist/house
#     dist/house/house.sh FROM TO [PROCESSES]   runs these seeds, a process a core; what fails is printed with its seed
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1-}" = pack ]; then
  cd "$here/../.."
  features=$(sed -n 's/^FEATURES := //p' Makefile)
  test=$(${CARGO:-cargo} test --workspace --features "$features" --test house --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\/house-[^"]*\)".*/\1/p' | tail -1)
  mkdir -p dist/house
  strip -o dist/house/house "$test"
  cc -shared -fPIC -O2 -o dist/house/disk.so tools/disk/disk.c
  cp "$0" dist/house/ 2>/dev/null || cp tools/disk/house.sh dist/house/
  exit
fi

from=$1 to=$2 processes=${3:-$(nproc)}
for ((at = 0; at < processes; at++)); do
  seeds=$((from + (to - from) * at / processes))..$((from + (to - from) * (at + 1) / processes))
  TACIT_HOUSE=$seeds TACIT_DISK=1 LD_PRELOAD=$here/disk.so \
    "$here/house" --exact one_seed_replays_the_house --nocapture > "$here/seeds-$seeds.log" 2>&1 &
done
failed=0
for job in $(jobs -p); do wait "$job" || failed=1; done
grep -hE "^seed |^  \[|^[0-9]+\.\.[0-9]+:" "$here"/seeds-*.log || true
exit $failed
