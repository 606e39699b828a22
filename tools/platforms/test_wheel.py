#!/usr/bin/env python3
"""What a wheel for Windows must have: wheels that lack one thing each. Ends with `N passed, N failed`."""

import struct
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import wheel  # noqa: E402

NAME = "tacit-0.1.0-cp311-abi3-win_amd64.whl"
TAG = "Tag: cp311-abi3-win_amd64\n"


def module(machine=0x8664, characteristics=0x2022, names=b"PyInit__tacit python3.dll"):
    start = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x80)
    header = b"PE\0\0" + struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, 0, characteristics)
    return start.ljust(0x80, b"\0") + header + names


class Wheels(unittest.TestCase):
    def problems(self, files, name=NAME, tag=TAG):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            with zipfile.ZipFile(path, "w") as archive:
                for file, content in {**files, "tacit-0.1.0.dist-info/WHEEL": tag}.items():
                    archive.writestr(file, content)
            return " ".join(wheel.problems(path))

    def test_one_module_for_the_processor_passes_and_all_else_does_not(self):
        one = "tacit/_tacit.pyd"
        self.assertEqual(self.problems({one: module(), "tacit/__init__.py": ""}), "")
        for files, more, words in [
            ({}, {}, "native files are []"),
            ({one: module(), "tacit/_tacit.abi3.so": b""}, {}, "native files"),
            ({one: b"\x7fELF".ljust(200, b"\0")}, {}, "no PE file"),
            ({one: b"MZ"}, {}, "no PE file"),
            ({one: module(machine=0xAA64)}, {}, "machine 0xaa64"),
            ({one: module(characteristics=0x22)}, {}, "no DLL"),
            ({one: module(names=b"PyInit__tacit")}, {}, "python3.dll"),
            ({one: module(names=b"python3.dll")}, {}, "PyInit__tacit"),
            ({one: module()}, {"name": "tacit-0.1.0-cp311-abi3-linux_x86_64.whl"}, "its name"),
            ({one: module()}, {"tag": "Tag: py3-none-any\n"}, "another tag"),
        ]:
            self.assertIn(words, self.problems(files, **more), (files.keys(), more))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
