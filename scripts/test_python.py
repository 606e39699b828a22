#!/usr/bin/env python3
"""The Python package: built, tested against real libraries of tables, and checked by mypy and ruff; its notebook is
executed. With TACIT_WHEEL=1, as in the long tests, its wheel is built, looked into, installed and tested; else
the module is built with the features of the other tests, which have compiled most of it.

Ends with `N passed, N failed`. Without a network to fetch what the tests need it says so and runs nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-py"
BIN = VENV / "bin"
DIST = ROOT / "target" / "wheels"
ENVIRONMENT = dict(os.environ)
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


def in_place():
    """Builds the module beside the package's sources."""
    if not run("the module", [os.environ.get("CARGO", "cargo"), "build", "--quiet", "--workspace", "--lib", "--tests"]):
        return False
    shutil.copyfile(ROOT / "target" / "debug" / "lib_tacit.so", ROOT / "python" / "tacit" / "_tacit.abi3.so")
    ENVIRONMENT["PYTHONPATH"] = str(ROOT / "python")
    return True


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

    if os.environ.get("TACIT_WHEEL"):
        made = wheel()
        pip = [BIN / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]
        ready = count(made is not None) and count(contents(made))
        ready = ready and count(run("the installation", [*pip, "--disable-pip-version-check", made]))
    else:
        ready = count(in_place())
    if ready:
        tests = subprocess.run(
            [str(BIN / "python"), "-m", "pytest", *sys.argv[1:]], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
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
