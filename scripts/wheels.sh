#!/usr/bin/env bash
# wheels.sh [PROFILE]: the Python package as a wheel for x86-64 and for aarch64, for any Linux of glibc 2.17 and later
# (manylinux2014), into target/wheels. Zig, from PyPI, is the linker and C compiler: no other toolchain is needed. Where
# mingw is (Debian's gcc-mingw-w64-x86-64), one for Windows on x86-64 too, whose content is checked and nothing runs.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-release}
venv=.venv-py
scripts/venv.sh $venv "${PYTHON:-python3}" polars -r python/requirements-test.txt
[ -x $venv/bin/maturin ] || { echo "error: the wheels need python/requirements-test.txt" >&2; exit 1; }
PATH="$PWD/$venv/bin:$PATH"
rm -f target/wheels/tacit-*.whl
for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
  rustup target add $target >/dev/null 2>&1 || true
  maturin build --quiet --zig --target $target --profile "$profile" --compatibility manylinux2014 --out target/wheels
done
if command -v x86_64-w64-mingw32-gcc >/dev/null; then
  target=x86_64-pc-windows-gnu
  rustup target add $target >/dev/null 2>&1 || true
  maturin build --quiet --target $target --profile "$profile" --out target/wheels
  python3 tools/platforms/wheel.py target/wheels/tacit-*-win_amd64.whl
else
  echo "no mingw here (Debian's gcc-mingw-w64-x86-64): no wheel for Windows"
fi
ls target/wheels
