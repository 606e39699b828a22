#!/usr/bin/env bash
# Whether memory is used as Rust wants it: `scripts/memory.sh miri [--quick]` and `scripts/memory.sh asan`.
# Both need a nightly compiler; where there is none, they say so and end well. `scripts/memory.sh prepare` fetches it,
# for who then runs both at once.
#
# miri   the tests of tests.miri, interpreted: any undefined behaviour ends them, leaks too.
# asan   the unit tests of tacit-crypto by AddressSanitizer, with all kernels that this processor has.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-}
nightly() { # nightly COMPONENT...: whether the compiler is there, which is fetched if it can be
  command -v rustup >/dev/null || return 1
  local components
  components=$(rustup +nightly component list --installed 2>/dev/null) || components=
  for component in "$@"; do
    grep -q "^$component" <<<"$components" && continue
    rustup toolchain install nightly --profile minimal -c "$(IFS=,; echo "$*")" >/dev/null 2>&1 || return 1
    return 0
  done
  [[ -n $components ]]
}

case $what in
prepare)
  nightly miri rust-src || true
  ;;
miri)
  if ! nightly miri rust-src; then
    echo "left out: no nightly compiler with Miri here (rustup toolchain install nightly -c miri -c rust-src)"
    exit 0
  fi
  # Tests with a disk and a clock; of properties few cases, as each takes a thousand times as long.
  export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}" PROPTEST_CASES=4 CARGO_TARGET_DIR=target/miri
  while read -r crate features names; do
    [[ $crate == \#* || -z $crate ]] && continue
    read -ra names <<<"$names"
    [[ $features == - ]] && features=
    if [[ $crate == @* ]]; then
      [[ ${2:-} == --quick ]] && continue
      crate=${crate#@}
    fi
    "${CARGO:-cargo}" +nightly miri test --quiet -p "$crate" --features "$features" --lib -- --exact "${names[@]}" </dev/null
  done <scripts/tests.miri
  ;;
asan)
  target=$(uname -m)-unknown-linux-gnu
  if ! nightly rust-src; then
    echo "left out: no nightly compiler here (rustup toolchain install nightly)"
    exit 0
  fi
  # What a caught panic threw is left lying on purpose (`fence.rs`), which is no leak to look for.
  export RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR=target/asan ASAN_OPTIONS=detect_leaks=0
  # Its reports name lines.
  export CARGO_PROFILE_DEV_DEBUG=line-tables-only
  "${CARGO:-cargo}" +nightly test -p tacit-crypto --lib --target "$target"
  ;;
*)
  sed -n '2,7s/^# //p' "$0" >&2
  exit 2
  ;;
esac
