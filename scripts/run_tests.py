#!/usr/bin/env python3
"""Runs every test and ends with one plain line, `N passed, N failed`.

    scripts/run_tests.py [--long] [--portable] [-p CRATE]...

--long      the statistical and the heavy tests too: each crate's feature `long-tests`, `tools/*/long_*.py`
--portable  the kernels without SIMD, for the crates whose results depend on them
-p CRATE    only these crates

The exit code is 0 only if at least one test ran, none failed, and everything compiled.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
# What `make demo` leaves out, and packages have.
FEATURES = "tacit-cli/postgres,tacit-cli/s3,tacit-py/postgres,tacit-py/s3"
PORTABLE_CRATES = ["tacit-crypto", "tacit-ot", "tacit-store", "tacit-psi", "tacit-bench"]


def cargo(arguments, env, stdout):
    """A `cargo test` that has begun."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--no-fail-fast", *arguments]
    print("+ " + " ".join(command), flush=True)
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=stdout, text=True, errors="replace")


def cargo_test(arguments, env):
    """One `cargo test`; returns (passed, failed)."""
    run = cargo(arguments, env, stdout=subprocess.PIPE)
    passed = failed = 0
    for line in run.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        if found := RESULT.match(line):
            passed += int(found[1])
            failed += int(found[2])
            if int(found[3]):
                print("error: an ignored test: remove it or move it to the long tests")
                failed += int(found[3])
    sound = run.wait() == 0
    if not sound and failed == 0:
        # A crate that does not compile, or a test binary that died, prints no result line.
        failed = 1
    return passed, failed


def python_test(script, env):
    """One of our Python tests, which end with `N passed, N failed`; returns both numbers, and what it said."""
    start = time.monotonic()
    run = subprocess.run([sys.executable, script], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, errors="replace")
    seconds = time.monotonic() - start
    said = f"+ {script.relative_to(ROOT)}\n{run.stdout.rstrip()}\n  ({seconds:.0f} s)"
    last = re.search(r"^(\d+) passed, (\d+) failed$", run.stdout, re.MULTILINE)
    if not last:
        return 0, 1, said
    passed, failed = int(last[1]), int(last[2])
    return passed, failed or int(run.returncode != 0), said


def long_features():
    """`CRATE/long-tests` for every crate that has the feature."""
    import tomllib

    names = []
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        content = tomllib.loads(manifest.read_text())
        if "long-tests" in content.get("features", {}):
            names.append(content["package"]["name"] + "/long-tests")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--portable", action="store_true")
    parser.add_argument("-p", dest="crates", action="append", default=[])
    options = parser.parse_args()

    env = dict(os.environ)
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists():
        env["TACIT_TEST_PYTHON"] = str(python)
    arguments = []
    crates = options.crates
    if options.portable:
        env["TACIT_SIMD"] = "portable"
        crates = crates or PORTABLE_CRATES
    if options.long:
        env["TACIT_LONG"] = "1"
    arguments += [word for crate in crates for word in ("-p", crate)] if crates else ["--workspace"]
    if not crates:
        features = [FEATURES, *(long_features() if options.long else [])]
        arguments += ["--features", ",".join(features)]

    # What the tools check does not depend on the kernels.
    tools = not options.portable and (not options.crates or "tacit-ot" in options.crates)
    # The network's time is nobody else's: what Python's tests need comes while the compiler works.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    prepare = [sys.executable, ROOT / "scripts" / "test_python.py", "--prepare"]
    preparing = subprocess.Popen(prepare, cwd=ROOT, env=env, **quiet) if tools else None
    start = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        others = []
        if tools:
            built = cargo(["--no-run", "--quiet", *arguments], env, stdout=None).wait() == 0
            preparing.wait()
            print(f"  compiled ({time.monotonic() - start:.0f} s)", flush=True)
            # What the scripts try is the command that was just built; they would build it with other features.
            command = ROOT / "target" / "debug" / "tacit"
            others_env = {"TACIT": str(command), **env} if command.exists() and not options.crates else env
            kinds = ["test", "long"] if options.long else ["test"]
            scripts = [*ROOT.glob("scripts/test_*.py")]
            scripts += [path for kind in kinds for path in ROOT.glob(f"tools/*/{kind}_*.py")]
            others = [(python_test, script, others_env) for script in sorted(scripts) if built]
        # Beside cargo's tests, one at a time; the long ones measure, and have the machine to themselves.
        if not options.long:
            others = [pool.submit(*other) for other in others]
        passed, failed = cargo_test(arguments, env)
        print(f"  ({time.monotonic() - start:.0f} s)", flush=True)
        for other in others:
            more = other[0](*other[1:]) if options.long else other.result()
            print(more[2], flush=True)
            passed, failed = passed + more[0], failed + more[1]
    if passed + failed == 0:
        failed = 1
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
