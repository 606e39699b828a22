#!/usr/bin/env python3
"""Cross-builds the command for Windows with mingw and runs it under Wine (wine.py), with every test of the command that can
run there. Takes an hour. Prints what is missing on this machine, and ends with `N passed, N failed`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(Path(__file__).resolve().parent)]
import wine  # noqa: E402
from run_tests import FEATURES, long_features  # noqa: E402

TARGET = "x86_64-pc-windows-gnu"
CARGO = os.environ.get("CARGO", "cargo")
# Little is optimised: what is tried is what systems do in their own way.
PLAIN = ["profile.dev.opt-level=1", "profile.dev.debug=false"]
PLAIN += [f"profile.dev.package.{package}.opt-level=0" for package in ("aws-lc-sys", "zstd-sys")]


def missing():
    """What the checks need and this machine lacks, or None."""
    if not shutil.which("x86_64-w64-mingw32-gcc"):
        return "the compiler is missing (Debian's gcc-mingw-w64-x86-64)"
    if not wine.wine():
        return "Wine is missing (Debian's wine64)"
    if shutil.which("rustup") and subprocess.run(["rustup", "target", "add", TARGET], capture_output=True).returncode != 0:
        return "Rust's target cannot be installed"
    return None


def built():
    """The command for Windows, as it is packed."""
    words = ["build", "--quiet", "-p", "tacit-cli", "--features", "postgres,s3", "--target", TARGET]
    subprocess.run([CARGO, *words, *(word for one in PLAIN for word in ("--config", one))], cwd=ROOT, check=True)
    return ROOT / "target" / TARGET / "debug" / "tacit.exe"


def binaries():
    """The command for here and the binary of its tests, by the words that run_tests.py compiles them with."""
    features = [FEATURES, *(long_features() if os.environ.get("TACIT_LONG") else [])]
    words = ["test", "--quiet", "--no-run", "--workspace", "--features", ",".join(features), "--message-format=json-render-diagnostics"]
    run = subprocess.run([CARGO, *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found = {}
    for line in run.stdout.splitlines():
        one = json.loads(line)
        if one.get("executable") and Path(one["manifest_path"]).parent.name == "tacit-cli":
            found[one["target"]["name"]] = Path(one["executable"])
    return ROOT / "target" / "debug" / "tacit", found["it"]


def main():
    if lacks := missing():
        print(f"Windows: the command is not run, {lacks}")
        print("0 passed, 0 failed")
        return 0
    native, tests = binaries()
    passed, failed = wine.check(built(), native, tests, is_long=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
