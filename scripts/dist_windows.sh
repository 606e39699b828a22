#!/usr/bin/env bash
# The command for Windows on x86-64, built across: target/dist/tacit-x86_64-pc-windows-gnu.zip and its bill of materials,
# beside what `make dist` made there, with the checksums and winget's manifests. Where Wine is, it is tried before it is
# packed. DIST_PROFILE as in scripts/dist.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${DIST_PROFILE:-release}
folder=$profile
[ "$profile" = dev ] && folder=debug
target=x86_64-pc-windows-gnu
command -v x86_64-w64-mingw32-gcc >/dev/null || {
  echo "error: no compiler for Windows; install Debian's gcc-mingw-w64-x86-64" >&2
  exit 1
}
rustup target add $target >/dev/null 2>&1 || true
"${CARGO:-cargo}" build --locked --profile "$profile" -p tacit-cli --features postgres,s3 --target $target

dist=target/dist
mkdir -p "$dist"
exe=$(mktemp -d)
trap 'rm -rf "$exe"' EXIT
x86_64-w64-mingw32-strip -o "$exe/tacit.exe" "target/$target/$folder/tacit.exe"
if [ -x /usr/lib/wine/wine64 ] || command -v wine64 wine >/dev/null; then
  python3 tools/platforms/wine.py "$exe/tacit.exe"
else
  echo "no Wine here (Debian's wine64): the command for Windows was not tried"
fi
python3 tools/release/release.py zip "$exe/tacit.exe" "$dist/tacit-$target.zip"
python3 tools/release/release.py sbom "$dist/tacit-$target.cdx.json" --target $target
(cd "$dist" && sha256sum tacit-*.* >SHA256SUMS && cat SHA256SUMS)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
python3 tools/release/release.py manifests "$version" "$dist/SHA256SUMS" "$dist/manifests"
