#!/usr/bin/env bash
# The command for macOS on both processors, built across by Zig without Apple's SDK: target/dist/tacit-….tar.gz and bills of
# materials, beside what `make dist` made there, with the checksums and the formula. No macOS is here to try them.
# DIST_PROFILE as in scripts/dist.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${DIST_PROFILE:-release}
folder=$profile
[ "$profile" = dev ] && folder=debug
scripts/venv.sh .venv-py "${PYTHON:-python3}" polars -r python/requirements-test.txt
dist=target/dist
mkdir -p "$dist"
pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
mkdir "$pack/tacit"
install -m 644 LICENSE-APACHE LICENSE-MIT "$pack/tacit/"
for target in aarch64-apple-darwin x86_64-apple-darwin; do
  rustup target add $target >/dev/null 2>&1 || true
  .venv-py/bin/python tools/platforms/macos.py --target $target --profile "$profile"
  install -m 755 "target/$target/$folder/tacit" "$pack/tacit/tacit"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
    -C "$pack" -cf - tacit | gzip -n >"$dist/tacit-$target.tar.gz"
  python3 tools/release/release.py sbom "$dist/tacit-$target.cdx.json" --target $target
done
(cd "$dist" && sha256sum tacit-*.* >SHA256SUMS && cat SHA256SUMS)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
python3 tools/release/release.py manifests "$version" "$dist/SHA256SUMS" "$dist/manifests"
