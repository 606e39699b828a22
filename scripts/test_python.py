#!/usr/bin/env python3
"""The Python package: built, installed into an environment of its own, tested against real libraries of tables, and
checked by mypy and ruff; its notebook is executed and its wheel looked into.

Ends with `N passed, N failed`. Without a network to fetch what the tests need it says so and runs nothing.
"""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-py"
BIN = VENV / "bin"
DIST = ROOT / "target" / "wheels"
REQUIREMENTS = ROOT / "python" / "requirements-test.txt"


def run(name, command, **options):
    """One step; returns whether it succeeded."""
    print(f"+ {name}", flush=True)
    return subprocess.run(list(map(str, command)), cwd=ROOT, **options).returncode == 0


def wheel():
    """Builds the wheel with the profile of the other tests, so that it shares what they compile."""
    for old in DIST.glob("tacit-*.whl"):
        old.unlink()
    build = [BIN / "maturin", "build", "--quiet", "--profile", os.environ.get("TACIT_WHEEL_PROFILE", "dev")]
    if not run("the wheel", [*build, "--out", DIST]):
        return None
    return next(DIST.glob("tacit-*.whl"), None)


def contents(path):
    """Whether the wheel holds the package and nothing of its tests or of this machine."""
    names = zipfile.ZipFile(path).namelist()
    wanted = ["tacit/__init__.py", "tacit/py.typed", "tacit/_tacit.pyi", "tacit/_tacit.abi3.so"]
    missing = [name for name in wanted if name not in names]
    stray = [name for name in names if "test" in name.lower() or name.endswith(".rs")]
    licences = [name for name in names if "LICENSE" in name]
    abi = "cp311-abi3" in path.name
    if missing or stray or len(licences) != 2 or not abi:
        print(f"error: the wheel {path.name} lacks {missing}, has {stray}, licences {licences}")
        return False
    return True


def main():
    subprocess.run([ROOT / "scripts" / "venv.sh", VENV, sys.executable, "polars", "-r", REQUIREMENTS], cwd=ROOT)
    if not (BIN / "maturin").exists():
        print("the tests of the Python package are left out: what they need could not be installed")
        print("0 passed, 0 failed")
        return 0
    passed = failed = 0

    def count(success):
        nonlocal passed, failed
        passed, failed = passed + bool(success), failed + (not success)
        return success

    made = wheel()
    if count(made is not None):
        count(contents(made))
        pip = [BIN / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]
        if count(run("the installation", [*pip, "--disable-pip-version-check", made])):
            tests = subprocess.run(
                [str(BIN / "python"), "-m", "pytest", *sys.argv[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True
            )
            print(tests.stdout, end="", flush=True)
            good, bad = (re.search(rf"(\d+) {word}", tests.stdout) for word in ("passed", "failed"))
            errors = re.search(r"(\d+) error", tests.stdout)
            passed += int(good[1]) if good else 0
            failed += sum(int(found[1]) for found in (bad, errors) if found) or int(tests.returncode != 0)
    count(run("mypy", [BIN / "mypy", "--no-error-summary"]))
    count(run("ruff check", [BIN / "ruff", "check", "--quiet", "python"]))
    count(run("ruff format", [BIN / "ruff", "format", "--quiet", "--check", "python"]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
