#!/usr/bin/env python3
"""Tests of `check_licences.py`: choices, conjunctions and what cannot be read.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import sys
import unittest

from check_licences import accepted, faults


class Licences(unittest.TestCase):
    def test_a_choice_needs_one_and_a_conjunction_all(self):
        for good in ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR ISC", "(GPL-3.0 OR MIT) AND ISC",
                     "GPL-3.0 AND ISC OR MIT", "Apache-2.0 WITH LLVM-exception"]:
            self.assertTrue(accepted(good), good)
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "MIT WITH other-exception"]:
            self.assertFalse(accepted(bad), bad)

    def test_what_is_no_expression_is_refused(self):
        for broken in ["MIT OR", "(MIT", "MIT)", "MIT ISC", "AND MIT", "()", "MIT)(OR"]:
            self.assertRaises(ValueError, accepted, broken)

    def test_each_faulty_package_has_its_line(self):
        licences = ["MIT", None, "GPL-3.0", "MIT OR"]
        packages = [{"name": "a", "version": str(at), "license": licence} for at, licence in enumerate(licences)]
        self.assertEqual([line.split(":")[0] for line in faults(packages)], ["a 1", "a 2", "a 3"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)
