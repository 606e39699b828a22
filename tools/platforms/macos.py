#!/usr/bin/env python3
"""Builds the command for macOS across, without Apple's SDK: Zig, from PyPI, compiles C and links.

    tools/platforms/macos.py [--target aarch64-apple-darwin] [--profile release] [--features postgres,s3]

Zig has what the system's own library exports. Of the frameworks a linker needs names alone: stubs with the names that the
dependencies declare are written into target/macos. What is built has not run on macOS here, where none is: the script
checks that it is a program for that processor, and that each library it wants is one that every macOS has.
"""

import argparse
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO", "cargo")
OLDEST = "11.0"
# Frameworks and libraries that every macOS has, and what their names begin with.
LIBRARIES = {
    "CoreFoundation": r"k?CF[A-Z]|__CF|_?kCF",
    "Foundation": r"NS[A-Z]",
    "Security": r"k?Sec[A-Z]|SSL[A-Z]|Authorization",
    "SystemConfiguration": r"k?SC[A-Z]",
    "iconv": r"iconv",
    "objc": r"_?objc_|class_|sel_|object_|method_|ivar_|property_|protocol_|imp_|OBJC_",
}
PLAIN = {"iconv": "/usr/lib/libiconv.2.dylib", "objc": "/usr/lib/libobjc.A.dylib"}
ARM, X86 = 0x0100000C, 0x01000007
TARGETS = {"aarch64-apple-darwin": ("aarch64", ARM), "x86_64-apple-darwin": ("x86_64", X86)}
DYLIB_COMMANDS = {0x0C, 0x18 | 0x80000000, 0x1F | 0x80000000}
SIGNATURE_COMMAND = 0x1D


def install_name(library):
    return PLAIN.get(library, f"/System/Library/Frameworks/{library}.framework/Versions/A/{library}")


def declared(target):
    """The names of foreign functions and values that the dependencies declare for this target."""
    words = [CARGO, "metadata", "--format-version", "1", "--filter-platform", target, "--all-features", "--locked"]
    found = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = set()
    for package in json.loads(found)["packages"]:
        if not re.search(r"foundation|security-framework|configuration|objc2?|dispatch|^libc$", package["name"]):
            continue
        for path in Path(package["manifest_path"]).parent.glob("src/**/*.rs"):
            text = path.read_text(encoding="utf-8")
            names.update(re.findall(r"\b(?:fn|static(?: mut)?)\s+([A-Za-z_]\w*)", text))
            names.update(re.findall(r'(?:link_name|export_name)\s*=\s*"(\w+)"', text))
    return names


def stubs(folder, target, names):
    """Writes what the linker asks of each library: its place and those of the names that it has."""
    for library, begins in LIBRARIES.items():
        own = sorted(f"_{name}" for name in names if re.match(begins, name))
        where = folder if library in PLAIN else folder / f"{library}.framework"
        where.mkdir(parents=True, exist_ok=True)
        arch = "arm64" if target.startswith("aarch64") else "x86_64"
        listed = ", ".join(f"'{name}'" for name in own)
        text = f"""--- !tapi-tbd
tbd-version: 4
targets: [ {arch}-macos ]
install-name: '{install_name(library)}'
exports:
  - targets: [ {arch}-macos ]
    symbols: [ {listed} ]
...
"""
        (where / (f"lib{library}.tbd" if library in PLAIN else f"{library}.tbd")).write_text(text)


def wrappers(folder, processor):
    """Programs by the names that cargo and build scripts call: Zig's compiler and its archiver."""
    zig = f'"{sys.executable}" -m ziglang'
    # Flags that name the target in Apple's words, which Zig has in its own.
    compiler = f"""#!/usr/bin/env bash
words=()
skip=
for word in "$@"; do
  if [ -n "$skip" ]; then skip=; continue; fi
  case "$word" in
    -arch) skip=1 ;;
    --target=*|-target=*|-mmacosx-version-min=*|-mmacos-version-min=*) ;;
    *) words+=("$word") ;;
  esac
done
exec {zig} cc -target {processor}-macos.{OLDEST} -F "{folder}" -L "{folder}" "${{words[@]}}"
"""
    for name, text in [("cc", compiler), ("ar", f'#!/usr/bin/env bash\nexec {zig} ar "$@"\n')]:
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
    return folder / "cc", folder / "ar"


def libraries(program, kind):
    """The libraries that a program for macOS wants; an error unless it is one for this processor, signed where it has to be."""
    data = program.read_bytes()
    magic, found, _, file_type, count = struct.unpack_from("<5I", data)
    if (magic, found, file_type) != (0xFEEDFACF, kind, 2):
        sys.exit(f"error: {program.name} is no program for this processor")
    at, wanted, signed = 32, [], kind != ARM
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        signed = signed or command == SIGNATURE_COMMAND
        if command in DYLIB_COMMANDS:
            (offset,) = struct.unpack_from("<I", data, at + 8)
            wanted.append(data[at + offset : at + size].split(b"\0")[0].decode())
        at += size
    if not signed:
        sys.exit(f"error: {program.name} has no signature, without which this processor's macOS runs nothing")
    return wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, default="aarch64-apple-darwin")
    parser.add_argument("--profile", default="release")
    parser.add_argument("--features", default="postgres,s3")
    options = parser.parse_args()
    if subprocess.run([sys.executable, "-m", "ziglang", "version"], capture_output=True).returncode:
        sys.exit("error: no Zig for this Python; pip install ziglang")
    folder = ROOT / "target" / "macos" / options.target
    folder.mkdir(parents=True, exist_ok=True)
    processor, kind = TARGETS[options.target]
    stubs(folder, options.target, declared(options.target))
    compiler, archiver = wrappers(folder, processor)
    name = options.target.replace("-", "_")
    environment = os.environ | {
        f"CC_{name}": str(compiler),
        f"AR_{name}": str(archiver),
        f"CARGO_TARGET_{name.upper()}_LINKER": str(compiler),
        "MACOSX_DEPLOYMENT_TARGET": OLDEST,
        "ZIG_GLOBAL_CACHE_DIR": str(folder / "cache"),
        "ZIG_LOCAL_CACHE_DIR": str(folder / "cache"),
    }
    words = [CARGO, "build", "--locked", "--profile", options.profile, "-p", "tacit-cli", "--target", options.target]
    words += ["--features", options.features] if options.features else []
    subprocess.run(words, cwd=ROOT, env=environment, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / options.target
    program = built / ("debug" if options.profile == "dev" else options.profile) / "tacit"
    known = {install_name(library) for library in LIBRARIES} | {"/usr/lib/libSystem.B.dylib"}
    if foreign := [library for library in libraries(program, kind) if library not in known]:
        sys.exit(f"error: {program.name} wants {', '.join(foreign)}")
    print(f"{program.relative_to(ROOT) if program.is_relative_to(ROOT) else program.name}: links; nothing here can run it")


if __name__ == "__main__":
    main()
