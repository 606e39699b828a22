#!/usr/bin/env bash
# The command as one static binary, with what it is deployed by: target/dist/tacit, and the same as an archive; an image
# of it, made without a daemon; the list of what it is made of (SBOM); formula and installer for this archive.
# The binary is tried where nothing else is: a root without libraries or files.
# DIST_PROFILE=dev builds as tests are built, in a third of the time, for a check.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${DIST_PROFILE:-release}
folder=$profile
[ "$profile" = dev ] && folder=debug
target="$(uname -m)-unknown-linux-musl"
command -v musl-gcc >/dev/null || { echo "error: no musl-gcc; install Debian's musl-tools" >&2; exit 1; }
rustup target add "$target" >/dev/null 2>&1 || true
"${CARGO:-cargo}" build --locked --profile "$profile" -p tacit-cli --features postgres,s3 --target "$target"

dist=target/dist
rm -rf "$dist"
mkdir -p "$dist/tacit"
install -m 755 "target/$target/$folder/tacit" "$dist/tacit/tacit"
strip "$dist/tacit/tacit"
install -m 644 LICENSE-APACHE LICENSE-MIT packaging/tacit.service packaging/tacit-relay.service packaging/Containerfile "$dist/tacit/"

if ldd "$dist/tacit/tacit" 2>/dev/null | grep -q '=>'; then
  echo "error: the binary asks for shared libraries" >&2
  exit 1
fi
scripts/try_static.sh "$dist/tacit/tacit"

tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
  -C "$dist" -cf - tacit | gzip -n >"$dist/tacit-$target.tar.gz"
python3 tools/release/release.py image "$dist/tacit/tacit" "$dist/tacit-image-$target.tar"
python3 tools/release/release.py sbom "$dist/tacit-$target.cdx.json" --target "$target"
(cd "$dist" && sha256sum tacit-*.* >SHA256SUMS && cat SHA256SUMS)
version=$("$dist/tacit/tacit" --version)
python3 tools/release/release.py manifests "${version##* }" "$dist/SHA256SUMS" "$dist/manifests"
