#!/usr/bin/env python3
"""What `macos.py` writes for a linker and reads in a program. Ends with `N passed, N failed`."""

import struct
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "tools")]
import macos  # noqa: E402
from verdicts import told  # noqa: E402

SYSTEM = "/usr/lib/libSystem.B.dylib"


def command(number, body):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<2I", number, 8 + len(body)) + body


def program(kind, wanted, signed=True, magic=0xFEEDFACF, file_type=2):
    """The head of a program: its kind, the libraries that it wants, and whether it is signed."""
    commands = [command(0x0C, struct.pack("<4I", 24, 0, 0, 0) + name.encode() + b"\0") for name in wanted]
    commands.insert(0, command(0x19, b"\1" * 64))
    commands += [command(macos.SIGNATURE_COMMAND, b"\0" * 8)] if signed else []
    head = struct.pack("<8I", magic, kind, 0, file_type, len(commands), sum(map(len, commands)), 0, 0)
    return head + b"".join(commands)


def read(folder, data, kind):
    path = Path(folder) / "tacit"
    path.write_bytes(data)
    try:
        return macos.libraries(path, kind)
    except SystemExit as error:
        return str(error)


def main():
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        wanted = [SYSTEM, macos.install_name("Security"), "/opt/own/libother.dylib"]
        verdicts.append(("libraries are read in order", read(folder, program(macos.ARM, wanted), macos.ARM) == wanted))
        for name, data, words in [
            ("another processor", program(macos.X86, wanted), "no program"),
            ("a library", program(macos.ARM, wanted, file_type=6), "no program"),
            ("a program for another system", program(macos.ARM, wanted, magic=0x464C457F), "no program"),
            ("no signature", program(macos.ARM, wanted, signed=False), "no signature"),
        ]:
            verdicts.append((f"refused: {name}", words in read(folder, data, macos.ARM)))
        unsigned = program(macos.X86, wanted, signed=False)
        verdicts.append(("Intel's needs no signature", read(folder, unsigned, macos.X86) == wanted))
        names = {"CFRelease", "kCFAllocatorDefault", "SecItemCopyMatching", "SCDynamicStoreCreate", "objc_msgSend", "main"}
        macos.stubs(Path(folder), "aarch64-apple-darwin", names)
        for library, name in [("CoreFoundation", "_kCFAllocatorDefault"), ("Security", "_SecItemCopyMatching")]:
            text = (Path(folder) / f"{library}.framework" / f"{library}.tbd").read_text()
            ours = f"'{name}'" in text and macos.install_name(library) in text and "_main" not in text
            verdicts.append((f"the stub of {library} has its own names", ours and "arm64-macos" in text))
        text = (Path(folder) / "libobjc.tbd").read_text()
        verdicts.append(("the stub of libobjc", "'_objc_msgSend'" in text and "_CFRelease" not in text))
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
