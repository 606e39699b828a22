#!/usr/bin/env python3
"""Runs every test and ends with one plain line, `N passed, N failed`.

    scripts/run_tests.py [--long] [--portable] [--times] [-p CRATE]...

--long      the statistical and the heavy tests too: each crate's feature `long-tests`, `tools/*/long_*.py`
--portable  the kernels without SIMD, for the crates whose results depend on them: the same binaries, run again
--times     prints the 30 slowest tests as a table at the end, as CONTRIBUTING.md has it; one binary at a time
-p CRATE    only these crates

The exit code is 0 only if at least one test ran, none failed, and everything compiled.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
TIMED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. \w+ <(\d+\.\d+)s>$")
SLOWEST = 30
# Many of these tests wait, so others run at the same time, from the moment that a binary is compiled; of those that
# are ready the ones begin that take longest.
LANES = 3
FIRST = ["tacit-cli", "tacit-2pc", "tacit-psi", "tacit-ot", "tacit"]
# Its tests start the command, which is linked beside them: they wait for it.
COMMAND = "tacit-cli"
# It compares times with arithmetic.
ALONE = ["tacit-net emulate"]
# What `make demo` leaves out, and packages have.
FEATURES = "tacit-cli/postgres,tacit-cli/s3,tacit-cli/adbc,tacit-py/postgres,tacit-py/s3"
PORTABLE_CRATES = ["tacit-crypto", "tacit-ot", "tacit-store", "tacit-psi", "tacit-bench"]


class Counts:
    """Passed and failed tests, and the seconds of each where they were asked for."""

    def __init__(self, live):
        self.passed = self.failed = 0
        self.times = []
        # Seconds of processor time of all tests: what a busy machine does not change much.
        self.worked = 0.0
        # Whether what tests print is shown as it comes: where one binary runs at a time.
        self.live = live
        self.lock = threading.Lock()

    def add(self, passed, failed):
        self.passed += passed
        self.failed += failed

    def table(self):
        """The slowest tests as a Markdown table."""
        lines = ["| seconds | crate | test |", "| --- | --- | --- |"]
        slowest = sorted(self.times, reverse=True)[:SLOWEST]
        return "\n".join(lines + [f"| {seconds:.0f} | `{crate}` | {test} |" for seconds, crate, test in slowest])


class Binary:
    """A compiled test binary: the crate it belongs to, its name in tables, where it runs and its path."""

    def __init__(self, message):
        manifest = Path(message["manifest_path"])
        self.crate = manifest.parent.name
        self.folder = manifest.parent
        target = message["target"]["name"].replace("_", "-")
        self.name = self.crate if target in (self.crate, "it") else f"{self.crate} {target}"
        self.path = message["executable"]
        self.is_test = message["profile"]["test"]


def start(command, env, **options):
    print("+ " + " ".join(map(str, command)), flush=True)
    return subprocess.Popen(command, env=env, text=True, errors="replace", **options)


def ended(run):
    """Waits for a process; whether it succeeded, and the processor time of it and of all that it waited for."""
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    return run.returncode == 0, used.ru_utime + used.ru_stime


def compile_tests(arguments, env, ready):
    """Compiles every test and hands each binary to `ready` when it is; whether everything compiles, and the processor
    time."""
    # Examples and benchmarks without tests are compiled by the lints.
    command = [os.environ.get("CARGO", "cargo"), "test", "--no-run", "--tests", "--message-format=json-render-diagnostics", *arguments]
    run = start(command, env, cwd=ROOT, stdout=subprocess.PIPE)
    for line in run.stdout:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable"):
            ready(Binary(message))
    return ended(run)


def count(run, counts, name):
    """Counts what tests print until they end, and prints it in one piece."""
    begin, lines = time.monotonic(), []
    for line in run.stdout:
        lines.append(line)
        if counts.live:
            print(line, end="", flush=True)
    sound, worked = ended(run)
    with counts.lock:
        if not counts.live:
            sys.stdout.writelines(lines)
        tally(lines, sound, counts, name)
        counts.worked += worked
        print(f"  {name} ({time.monotonic() - begin:.0f} s, of a processor {worked:.0f} s)", flush=True)


def tally(lines, sound, counts, name):
    passed = failed = 0
    for line in lines:
        if found := RESULT.match(line):
            passed += int(found[1])
            failed += int(found[2])
            if int(found[3]):
                print("error: an ignored test: remove it or move it to the long tests")
                failed += int(found[3])
        elif found := TIMED.match(line):
            counts.times.append((float(found[2]), name.split()[0], found[1]))
    if not sound and failed == 0:
        # What does not compile, or a test binary that died, prints no result line.
        failed = 1
    counts.add(passed, failed)


def run_binary(binary, env, counts, timed):
    """Runs one test binary as cargo does, in its crate's folder."""
    words = []
    if timed:
        # The times are behind a switch of the nightly compiler's; the tests are the same.
        words, env = ["-Zunstable-options", "--report-time"], {**env, "RUSTC_BOOTSTRAP": "1"}
    count(start([binary.path, *words], env, cwd=binary.folder, stdout=subprocess.PIPE), counts, binary.name)


def run_examples(options, env, counts):
    """Runs the examples in the documentation, of all crates that were compiled."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--doc", "--no-fail-fast", *arguments_of(options)]
    count(start(command, env, cwd=ROOT, stdout=subprocess.PIPE), counts, "documentation")


def python_test(script, env):
    """One of our Python tests, which end with `N passed, N failed`; returns both numbers, what it said and the
    processor time."""
    begin = time.monotonic()
    command = [sys.executable, script]
    run = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, errors="replace")
    output = run.stdout.read()
    sound, worked = ended(run)
    seconds = time.monotonic() - begin
    said = f"+ {script.relative_to(ROOT)}\n{output.rstrip()}\n  ({seconds:.0f} s, of a processor {worked:.0f} s)"
    last = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    if not last:
        return 0, 1, said, worked
    passed, failed = int(last[1]), int(last[2])
    return passed, failed or int(not sound), said, worked


def long_features():
    """`CRATE/long-tests` for every crate that has the feature."""
    import tomllib

    names = []
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        content = tomllib.loads(manifest.read_text())
        if "long-tests" in content.get("features", {}):
            names.append(content["package"]["name"] + "/long-tests")
    return names


def arguments_of(options):
    """What is compiled, in cargo's words. All crates and features at once, whatever runs, so that it compiles once."""
    if options.crates:
        return [word for crate in options.crates for word in ("-p", crate)]
    return ["--workspace", "--features", ",".join([FEATURES, *(long_features() if options.long else [])])]


def scripts_of(options):
    """The Python tests. What they check does not depend on the kernels."""
    if options.portable or (options.crates and "tacit-ot" not in options.crates):
        return []
    kinds = ["test", "long"] if options.long else ["test"]
    scripts = [*ROOT.glob("scripts/test_*.py")]
    return sorted(scripts + [path for kind in kinds for path in ROOT.glob(f"tools/*/{kind}_*.py")])


def environment(options):
    env = dict(os.environ)
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists():
        env["TACIT_TEST_PYTHON"] = str(python)
    if options.portable:
        env["TACIT_SIMD"] = "portable"
    if options.long:
        env["TACIT_LONG"] = "1"
    return env


class Lanes:
    """Runs test binaries, some at a time, those first that take longest; what needs the machine to itself at the end."""

    def __init__(self, options, env, counts):
        self.options, self.env, self.counts = options, env, counts
        self.crates = options.crates or (PORTABLE_CRATES if options.portable else [])
        self.waiting, self.alone, self.closed = [], [], False
        # Of the command's crate, until the command is there.
        self.held, self.has_command = [], False
        self.changed = threading.Condition()
        # What is timed runs when everything is compiled, and alone.
        lanes = 1 if counts.live else LANES
        self.threads = [threading.Thread(target=self.work) for _ in range(lanes)]
        if not counts.live:
            self.begin()

    def begin(self):
        for thread in self.threads:
            thread.start()

    def add(self, binary):
        with self.changed:
            if not binary.is_test:
                self.has_command |= binary.crate == COMMAND
                if self.has_command:
                    self.release()
                return
            if self.crates and binary.crate not in self.crates:
                return
            if binary.crate == COMMAND and not self.has_command:
                self.held.append(binary)
            else:
                (self.alone if binary.name in ALONE else self.waiting).append(binary)
            self.changed.notify()

    def release(self):
        self.waiting += self.held
        self.held = []
        self.changed.notify_all()

    def work(self):
        while True:
            with self.changed:
                while not self.waiting and not self.closed:
                    self.changed.wait()
                if not self.waiting:
                    return
                rank = lambda binary: FIRST.index(binary.crate) if binary.crate in FIRST else len(FIRST)
                binary = min(self.waiting, key=rank)
                self.waiting.remove(binary)
            run_binary(binary, self.env, self.counts, self.options.times)

    def finish(self, compiled):
        """Waits for all; nothing more is begun where not all was compiled."""
        with self.changed:
            self.closed = True
            self.release()
            if not compiled:
                self.waiting.clear()
            self.changed.notify_all()
        if self.counts.live and compiled:
            self.begin()
        # What the examples show does not depend on the kernels.
        if compiled and not self.options.portable:
            run_examples(self.options, self.env, self.counts)
        for thread in self.threads:
            if thread.is_alive():
                thread.join()
        for binary in self.alone if compiled else []:
            run_binary(binary, self.env, self.counts, self.options.times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--portable", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("-p", dest="crates", action="append", default=[])
    options = parser.parse_args()

    # What is measured has the machine to itself.
    alone = options.long or options.times
    env, counts, scripts = environment(options), Counts(live=alone), scripts_of(options)
    # Packages for Python are downloaded while the compiler works.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    prepare = [sys.executable, ROOT / "scripts" / "test_python.py", "--prepare"]
    preparing = subprocess.Popen(prepare, cwd=ROOT, env=env, **quiet) if scripts else None
    begin = time.monotonic()
    lanes = Lanes(options, env, counts)
    compiled, compiling = compile_tests(arguments_of(options), env, lanes.add)
    print(f"  compiled ({time.monotonic() - begin:.0f} s, of a processor {compiling:.0f} s)", flush=True)
    if preparing:
        preparing.wait()
    # What the scripts try is the command that was just built; they would build it with other features.
    command = ROOT / "target" / "debug" / "tacit"
    others_env = {"TACIT": str(command), **env} if command.exists() and not options.crates else env
    with ThreadPoolExecutor(1) as pool:
        # At the same time as cargo's tests, one at a time.
        others = [] if alone or not compiled else [pool.submit(python_test, script, others_env) for script in scripts]
        lanes.finish(compiled)
        if not compiled:
            print("0 passed, 1 failed", flush=True)
            return 1
        print(f"  ({time.monotonic() - begin:.0f} s)", flush=True)
        for passed, failed, said, worked in (
            (python_test(script, others_env) for script in scripts) if alone else (other.result() for other in others)
        ):
            print(said, flush=True)
            counts.add(passed, failed)
            counts.worked += worked
    if options.times:
        print(counts.table())
    counts.add(0, int(counts.passed + counts.failed == 0))
    print(f"processor time: {compiling:.0f} s to compile, {counts.worked:.0f} s of tests")
    print(f"{counts.passed} passed, {counts.failed} failed", flush=True)
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
