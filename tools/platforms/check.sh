#!/usr/bin/env bash
# Other platforms, from this x86-64 Linux: the command for aarch64 Linux runs under qemu against the one built for
# here, on either side; so does the command for Windows under Wine, with tests of the command; the command is linked for
# macOS, and nobody runs it.
# What cannot be installed here is reported, and left out.
#
#   tools/platforms/check.sh [--prepare | --long]
#
# --prepare only installs what the checks need. --long runs under Wine all tests of the command that can
# run there: an hour. TACIT names the command for here; without it, it is built.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TERM_COLOR=never
LOOK=tools/platforms/interoperate.py

need() { # need COMMAND DEBIAN-PACKAGE…: whether the command is here, installed where that goes
  local command=$1
  shift
  command -v "$command" >/dev/null && return
  apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq "$@" >/dev/null 2>&1 && command -v "$command" >/dev/null
}

target() {
  rustup target add "$1" >/dev/null 2>&1
}

if [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "these checks start from x86-64 Linux: left out"
  exit 0
fi

arm=aarch64-unknown-linux-gnu
windows=x86_64-pc-windows-gnu
mac=aarch64-apple-darwin

has_arm() {
  need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross && need qemu-aarch64 qemu-user && target $arm
}
has_windows() {
  need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 && target $windows
}
has_wine() {
  [ -x /usr/lib/wine/wine64 ] || need wine64 wine64
}
has_mac() {
  # Zig, from PyPI, has the headers that C code takes there.
  scripts/venv.sh .venv-platforms "${PYTHON:-python3}" ziglang ziglang cargo-zigbuild
  [ -x .venv-platforms/bin/cargo-zigbuild ] && target $mac
}

if [ "${1:-}" = --prepare ]; then
  has_arm || true
  has_windows || true
  has_wine || true
  has_mac || true
  exit 0
fi

long=
[ "${1:-}" = --long ] && long=--long

# cargo check compiles C code but runs none, so nothing is optimised.
CHECK=(check --quiet -p tacit-cli)
C_PLAIN=()
for package in aws-lc-sys zstd-sys; do
  C_PLAIN+=(--config "profile.dev.package.$package.opt-level=0")
done
CHECK+=("${C_PLAIN[@]}")

if has_arm; then
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
  native=${TACIT:-target/debug/tacit}
  [ -n "${TACIT:-}" ] || cargo build --quiet -p tacit-cli
  cargo build --quiet -p tacit-cli --target $arm
  python3 $LOOK "$native" "qemu-aarch64 -L /usr/aarch64-linux-gnu target/$arm/debug/tacit"
  # Without AES and carry-less products in the processor: the portable kernels.
  TACIT_SIMD=portable python3 $LOOK "$native" "qemu-aarch64 -L /usr/aarch64-linux-gnu target/$arm/debug/tacit"
else
  echo "aarch64 Linux: not checked, its compiler, qemu-user or Rust's target cannot be installed here"
fi

if has_windows; then
  # Little is optimised: what is tried is what the systems do in their own way.
  BUILD=(build --quiet -p tacit-cli --target $windows --config profile.dev.opt-level=1 --config profile.dev.debug=false)
  cargo "${BUILD[@]}" "${C_PLAIN[@]}"
  echo "Windows: the command is built"
  if has_wine; then
    features=$(sed -n 's/^FEATURES := //p' Makefile)
    # By these words scripts/run_tests.py compiles the tests, so that they are there.
    tests=$(cargo test --quiet --no-run --workspace --features "$features" --message-format=json 2>/dev/null |
      python3 -c 'import json, sys
for line in sys.stdin:
    one = json.loads(line)
    if one.get("executable") and "/tacit-cli#" in one["package_id"] and one["target"]["name"] == "it":
        print(one["executable"])')
    native=${TACIT:-target/debug/tacit}
    [ -n "${TACIT:-}" ] || cargo build --quiet -p tacit-cli
    python3 tools/platforms/wine.py target/$windows/debug/tacit.exe "$native" "$tests" $long
  else
    echo "Windows: not run, Wine cannot be installed here"
  fi
else
  echo "Windows: not checked, mingw or Rust's target cannot be installed here"
fi

if has_mac; then
  PATH="$PWD/.venv-platforms/bin:$PATH" cargo-zigbuild "${CHECK[@]}" --target $mac
  echo "macOS: the command passes cargo check"
else
  echo "macOS: not checked, Zig or Rust's target cannot be installed here"
fi
