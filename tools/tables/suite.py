"""What the tests of tables have alike: the environment that they need, and how they end."""

import importlib.util
import os
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-py" / "bin" / "python"


def run(case, needed):
    """Runs the tests of a class, in the environment for Python if a package that they need is missing here."""
    if VENV.exists() and Path(sys.prefix) != VENV.parent.parent and not all(map(importlib.util.find_spec, needed)):
        os.execv(VENV, [str(VENV), sys.argv[0]])
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    for test, why in result.skipped:
        print(f"note: {test}: {why}")
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - min(failed, result.testsRun)} passed, {failed} failed")
    return 1 if failed else 0
