#!/usr/bin/env python3
"""wheel.py WHEEL: fails unless a wheel for Windows on x86-64 has what Python loads there, and nothing for another system:
one extension module, a DLL of that processor that exports its start and loads Python's stable interface."""

import struct
import sys
import zipfile
from pathlib import Path

AMD64 = 0x8664
DLL = 0x2000
NATIVE = (".pyd", ".dll", ".so", ".dylib", ".exe")


def problems(path):
    """What is wrong with the wheel at `path`; nothing if it is fine."""
    found = []
    if not Path(path).name.endswith("-abi3-win_amd64.whl"):
        found.append("its name is not that of a wheel for Windows on x86-64 by the stable interface")
    with zipfile.ZipFile(path) as wheel:
        native = [name for name in wheel.namelist() if name.endswith(NATIVE)]
        if native != ["tacit/_tacit.pyd"]:
            return [*found, f"its native files are {native}, not tacit/_tacit.pyd alone"]
        module = wheel.read(native[0])
        tags = [name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL")]
        if not tags or b"Tag: cp311-abi3-win_amd64" not in wheel.read(tags[0]):
            found.append("its WHEEL has another tag")
    start = struct.unpack_from("<I", module, 0x3C)[0] if module[:2] == b"MZ" and len(module) > 0x40 else len(module)
    if module[start : start + 4] != b"PE\0\0":
        return [*found, "the module is no PE file"]
    machine, characteristics = struct.unpack_from("<H", module, start + 4)[0], struct.unpack_from("<H", module, start + 22)[0]
    if machine != AMD64 or not characteristics & DLL:
        found.append(f"the module is no DLL for x86-64: machine {machine:#x}, characteristics {characteristics:#x}")
    found += [f"the module does not name {word.decode()}" for word in (b"PyInit__tacit", b"python3.dll") if word not in module]
    return found


if __name__ == "__main__":
    faults = problems(sys.argv[1])
    print("\n".join(f"error: {sys.argv[1]}: {fault}" for fault in faults) or f"{sys.argv[1]}: one module for x86-64")
    sys.exit(bool(faults))
