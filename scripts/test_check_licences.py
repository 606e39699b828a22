#!/usr/bin/env python3
"""Tests of `check_licences.py`: expressions, indexes and each kind of fault.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import sys
import tempfile
import unittest
from pathlib import Path

import check_licences


def package(name="good", version="1.0.0", licence="MIT", source=check_licences.REGISTRY):
    return {"name": name, "version": version, "license": licence, "source": source}


class Test(unittest.TestCase):
    def test_expressions(self):
        for fit in [
            "MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "MIT OR GPL-3.0", "(MIT OR GPL-2.0) AND ISC",
            "Apache-2.0 WITH LLVM-exception", "MIT OR Apache-2.0 AND GPL-2.0",
        ]:  # fmt: skip
            self.assertTrue(check_licences.admits(fit), fit)
        for unfit in [
            None, "", "GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 AND MIT", "MIT MIT", "(MIT", "MIT)", "OR MIT", "MIT OR",
            "GPL-2.0 WITH LLVM-exception", "MIT WITH", "(MIT OR ISC) AND (GPL-2.0 OR GPL-3.0)",
        ]:  # fmt: skip
            self.assertFalse(check_licences.admits(unfit), unfit)

    def test_places_in_an_index(self):
        for name, place in [("a", "1/a"), ("cc", "2/cc"), ("aes", "3/a/aes"), ("Serde", "se/rd/serde")]:
            self.assertEqual(check_licences.index_path(name), place)

    def test_each_fault_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)
            (cache / "go/od").mkdir(parents=True)
            lines = [b'{"vers":"1.0.0","yanked":false}', b'{"vers":"1.0.1","yanked":true}']
            (cache / "go/od/good").write_bytes(b"\3\2\0\0\0etag\0" + b"\0".join([b"1.0.0", lines[0], b"1.0.1", lines[1]]))

            def kinds(**what):
                found = check_licences.faults([package(**what)], [cache])
                return [kind for kind, lines in found.items() if lines]

            self.assertEqual(kinds(), [])
            self.assertEqual(kinds(name="ours", source=None), [])
            self.assertEqual(kinds(licence="GPL-3.0"), ["licences"])
            # A licence that one crate may have is not everybody's, and that crate may have no other.
            for name, licence in check_licences.BY_NAME.items():
                self.assertEqual(kinds(licence=licence), ["licences"])
                self.assertNotIn("licences", kinds(name=name, licence=licence))
                self.assertIn("licences", kinds(name=name, licence="GPL-3.0"))
            self.assertEqual(kinds(source="git+https://example.invalid/good"), ["origins"])
            self.assertEqual(kinds(version="1.0.1"), ["not withdrawn"])
            self.assertEqual(kinds(name="stranger"), ["not withdrawn"])


if __name__ == "__main__":
    result = unittest.TextTestRunner(stream=sys.stdout).run(unittest.defaultTestLoader.loadTestsFromTestCase(Test))
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
