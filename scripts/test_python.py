#!/usr/bin/env python3
"""The Python package: built, tested against real libraries of tables, and checked by mypy and ruff; its notebook is
executed. The module is built with the features of the other tests, which have compiled most of it; the wheels have
tests of their own (tools/wheels), among the long ones. With `--prepare` it does no more than to install what they
need, which goes on beside a build.

Ends with `N passed, N failed`. Without a network to fetch what the tests need it says so and runs nothing.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from run_tests import FEATURES

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "tests"))
from clusters import has_java  # noqa: E402

VENV = ROOT / ".venv-py"
BIN = VENV / "bin"
ENVIRONMENT = dict(os.environ)
REQUIREMENTS = ROOT / "python" / "requirements-test.txt"
STORES = ROOT / "python" / "requirements-stores.txt"
DATA = ROOT / "python" / "requirements-data.txt"
SPARK = ROOT / "python" / "requirements-spark.txt"


def run(name, command, **options):
    """One step; returns whether it succeeded."""
    print(f"+ {name}", flush=True)
    return subprocess.run(list(map(str, command)), cwd=ROOT, **options).returncode == 0


def java():
    """Spark runs on Java 17 or later. Where there is none Debian's is installed, if that can be done; without it Spark's
    tests say that they are left out."""
    if has_java() or "JAVA_HOME" in os.environ or shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    for words in (["update"], ["install", "-y", "openjdk-17-jre-headless"]):
        subprocess.run(
            ["apt-get", "-qq", *words],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )


def in_place():
    """Builds the module beside the package's sources."""
    if not run("the module", [os.environ.get("CARGO", "cargo"), "build", "--quiet", "--workspace", "--lib", "--tests", "--features", FEATURES]):
        return False
    shutil.copyfile(ROOT / "target" / "debug" / "lib_tacit.so", ROOT / "python" / "tacit" / "_tacit.abi3.so")
    ENVIRONMENT["PYTHONPATH"] = str(ROOT / "python")
    return True


def pip(*words):
    """Installs; returns whether it could."""
    command = [BIN / "pip", "install", "-q", "--disable-pip-version-check", *words]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def prepare():
    """The environment of the tests; returns whether it is there."""
    subprocess.run([ROOT / "scripts" / "venv.sh", VENV, sys.executable, "polars", "-r", REQUIREMENTS], cwd=ROOT)
    if not (BIN / "maturin").exists():
        return False
    # Large, and of use for its own tests alone, which say so where it or Java is not there.
    if pip("-r", SPARK):
        java()
    # Sets of data alone, without what the packages around them would import.
    pip("--no-deps", "-r", DATA)
    # What stands for S3; without it its tests say that they did not run.
    pip("-r", STORES)
    return True


def main():
    if sys.argv[1:] == ["--prepare"]:
        return 0 if prepare() else 1
    if not prepare():
        print("the tests of the Python package are left out: what they need could not be installed")
        print("0 passed, 0 failed")
        return 0
    passed = failed = 0

    def count(success):
        nonlocal passed, failed
        passed, failed = passed + bool(success), failed + (not success)
        return success

    ready = count(in_place())
    if ready:
        tests = subprocess.run(
            [str(BIN / "python"), "-m", "pytest", "-rs", *sys.argv[1:]], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
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
