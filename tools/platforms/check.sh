#!/usr/bin/env bash
# Other platforms, from this x86-64 Linux: the command for aarch64 Linux runs under qemu against the one built for
# here, on either side; the command is checked for Windows and for macOS.
# What cannot be installed here is reported, and left out.
#
#   tools/platforms/check.sh [--prepare | --long]
#
# --prepare only installs what the checks need. --long builds the command for Windows too, and runs it under Wine with its
# tests (long_windows.py): an hour. TACIT names the command for here; without it, it is built.
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
  has_mac || true
  exit 0
fi

# Clippy compiles C code but runs none, so nothing is optimised. Of all that the command is made of, code that only these
# systems compile included, no warning is let pass.
CHECK=(clippy --quiet --workspace --exclude tacit-py --exclude tacit-fuzz --exclude tacit-valgrind)
for package in aws-lc-sys zstd-sys; do
  CHECK+=(--config "profile.dev.package.$package.opt-level=0")
done

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
  cargo "${CHECK[@]}" --target $windows -- -D warnings
  echo "Windows: the command passes clippy"
  if [ "${1:-}" = --long ]; then
    has_wine || true
    "${PYTHON:-python3}" tools/platforms/long_windows.py
  fi
else
  echo "Windows: not checked, mingw or Rust's target cannot be installed here"
fi

if has_mac; then
  PATH="$PWD/.venv-platforms/bin:$PATH" cargo-zigbuild "${CHECK[@]}" --target $mac -- -D warnings
  echo "macOS: the command passes clippy"
else
  echo "macOS: not checked, Zig or Rust's target cannot be installed here"
fi
