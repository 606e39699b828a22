"""Starts a script again with the Python of `make venv`, where the one that runs it has no numpy."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def ensure():
    """Returns where numpy is there."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        venv = os.environ.get("TACIT_TEST_PYTHON", ROOT / ".venv" / "bin" / "python")
        if not Path(venv).exists() or Path(venv) == Path(sys.executable):
            print("numpy is missing: `make venv` installs it\n0 passed, 1 failed")
            sys.exit(1)
        sys.exit(subprocess.run([venv, *sys.argv]).returncode)
