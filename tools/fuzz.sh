#!/bin/bash
# Fuzzes parsers by libFuzzer (`fuzz/`), on a nightly compiler:
#     tools/fuzz.sh TARGET SECONDS [OPTION OF LIBFUZZER]...   one target, from its seeds; new inputs in fuzz/out
#     tools/fuzz.sh all SECONDS                               every target, by fuzz/campaign.sh
#     tools/fuzz.sh grow [TARGET]...                          chooses seeds out of what fuzz/out has (fuzz/grow.py)
#     tools/fuzz.sh build                                     the binary alone; its path is printed
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
# Coverage as cargo-fuzz asks for it. No AddressSanitizer: unsafe code is in kernels alone, which no parser enters.
pass() { printf -- ' -Cllvm-args=-sanitizer-coverage-%s' "$@"; }
export RUSTFLAGS="-Cpasses=sancov-module$(pass level=4 inline-8bit-counters pc-table trace-compares)"
triple=$(rustc -vV | sed -n 's/^host: //p')
if ! rustc +nightly --version >/dev/null 2>&1; then
    echo "left out: no nightly compiler here (rustup toolchain install nightly)"
    exit 0
fi
cargo +nightly build --quiet --release --target "$triple"
export FUZZ=$PWD/target/$triple/release/fuzz
case ${1:-} in
build) echo "$FUZZ" ;;
all) exec ./campaign.sh out "${2:-60}" "$(nproc)" ;;
grow)
    TACIT_FUZZ_PREPARE=out/whole "$FUZZ"
    exec ./grow.py "$FUZZ" out "${@:2}"
    ;;
*)
    TACIT_FUZZ_PREPARE=out/whole "$FUZZ"
    grep -q "^$1 " out/whole/targets || { echo "error: no target is called $1; see out/whole/targets" >&2; exit 2; }
    mkdir -p "out/$1/corpus" "out/$1/crashes" "seeds/$1"
    [ -s "out/whole/$1.dict" ] && words=-dict=out/whole/$1.dict || words=-verbosity=1
    TACIT_FUZZ=$1 exec "$FUZZ" "out/$1/corpus" "seeds/$1" "out/whole/$1" "$words" \
        -max_len="$(awk -v name="$1" '$1 == name { print $2 }' out/whole/targets)" -max_total_time="${2:-60}" \
        -timeout=10 -rss_limit_mb=2048 -artifact_prefix="out/$1/crashes/" "${@:3}"
    ;;
esac
