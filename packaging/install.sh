#!/bin/sh
# Installs the command `tacit` @VERSION@ into ~/.local/bin, or into the directory given: install.sh [DIR]
# The archive is compared with the checksum in this file before anything of it runs.
set -eu

directory=${1:-$HOME/.local/bin}
case "$(uname -s)" in
  Linux) system=unknown-linux-musl ;;
  Darwin) system=apple-darwin ;;
  *) echo "error: no archive for $(uname -s); see the release page" >&2; exit 1 ;;
esac
case "$(uname -m)" in
  arm64 | aarch64) target=aarch64-$system ;;
  *) target=$(uname -m)-$system ;;
esac
case "$target" in
  @CASES@
  *) echo "error: this release has no archive for $target; build it: cargo install --path crates/tacit-cli" >&2; exit 1 ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if command -v curl >/dev/null; then
  curl --proto '=https,file' --fail --silent --show-error --location --output "$folder/$name" "@URL@/$name"
else
  wget --quiet --output-document "$folder/$name" "@URL@/$name"
fi
if command -v sha256sum >/dev/null; then found=$(sha256sum "$folder/$name"); else found=$(shasum -a 256 "$folder/$name"); fi
[ "${found%% *}" = "$sum" ] || { echo "error: $name: the checksum is ${found%% *}, expected $sum; nothing was installed" >&2; exit 1; }
tar -xzf "$folder/$name" -C "$folder"
mkdir -p "$directory"
install -m 755 "$folder/tacit/tacit" "$directory/tacit"
echo "$("$directory/tacit" --version) installed as $directory/tacit; \`tacit\` says where to start"
case ":$PATH:" in
  *":$directory:"*) ;;
  *) echo "note: $directory is not in your PATH" ;;
esac
