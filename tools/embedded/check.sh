#!/bin/sh
# Builds ROTed without the standard library, for this machine and for ARM. Needs the targets of `rustup target add`.
# BLAKE3 is taken in Rust alone (`pure`), so that no C compiler for the target is needed.
set -e
cd "$(dirname "$0")/../.."
cargo check -q -p tacit-roted --no-default-features --features pure
echo "this machine: checks without std"
installed=$(rustup target list --installed)
for target in aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf thumbv7em-none-eabihf; do
    case "$installed" in
    *"$target"*)
        cargo build -q -p tacit-roted --no-default-features --features pure --target "$target"
        echo "$target: builds without std"
        ;;
    *) echo "$target: not checked, its toolchain is not installed (rustup target add $target)" ;;
    esac
done
