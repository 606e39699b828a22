#!/usr/bin/env python3
"""Every operation of the command that writes, on a disk that fails at its first call, its second, and so on.

    tools/disk/operations.py [--only WORD]... [--step K] [--kinds KIND,...] [--jobs N] [--width N] [--keep DIR]

Each operation of `catalogue.py` runs with one fault of `disk.c` at the nth call that concerns its folder, for n = 1, 2
and so on until it ends before the fault comes; --step K takes every Kth n only. --jobs operations run at a time, and
of each of them --width runs of a kind. After each:

- it ended, and with the right exit code: 0 only if its outputs are whole, never one that blames the peer, and with one
  line of error;
- under an output's name there is a whole file, the old one, or none, and nothing unfinished beside it;
- the same command succeeds once the fault is gone, or says that what serves once has served;
- what the operation promises beyond that (`Operation.check`) holds.

A power cut takes what was not synced. Prints a table; the exit code is 0 only if all held.
"""

import argparse
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COMMAND = os.environ.get("TACIT", str(ROOT / "target" / "debug" / "tacit"))
# What is left after a power cut is drawn: each of these draws anew.
CUTS = ["crash", "crash-2", "crash-3"]
KINDS = ["eio", "sync", "full", "short", *CUTS]
SECONDS = 60
CUT = 99
# More calls than any operation makes here.
MOST = 2000


def library(folder):
    """The library that plays the disk, compiled; none where this machine cannot."""
    made = Path(folder) / "disk.so"
    run = subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", made, HERE / "disk.c"], capture_output=True, check=False)
    return made if run.returncode == 0 else None


def free_address():
    """An address of this machine that no other case has: a port alone may be another's before it is listened on."""
    host = ".".join(["127", *(str(random.randrange(1, 255)) for _ in range(3))])
    with socket.socket() as found:
        found.bind((host, 0))
        return f"{host}:{found.getsockname()[1]}"


class Case:
    """A folder `w` whose disk may fail, and `p` of the peer's, whose disk does not."""

    def __init__(self, folder, disk, plan=None, seed="0"):
        self.folder, self.disk, self.plan, self.seed = folder, disk, plan, seed
        self.w, self.p = folder / "w", folder / "p"
        self.address = free_address()

    def start(self, words, where="w", faulty=False, **pipes):
        env = {"PATH": os.environ.get("PATH", ""), "RUST_BACKTRACE": "0"}
        if faulty and self.plan:
            env |= {"LD_PRELOAD": str(self.disk), "DISK_ROOT": str(self.w), "DISK_PLAN": self.plan}
            env |= {"DISK_FIRED": str(self.folder / "fired"), "DISK_SEED": self.seed}
        words = [word.replace("ADDRESS", self.address) for word in words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
        return subprocess.Popen(
            [COMMAND, *words], cwd=self.folder / where, env=env, stdin=subprocess.DEVNULL, text=True, **pipes
        )

    def run(self, words, where="w", faulty=False):
        """Runs a command to its end; one that has none counts as killed by signal 9."""
        child = self.start(words, where, faulty)
        try:
            out, err = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
        return Said(child.returncode, out, err)

    def good(self, words, where="w"):
        said = self.run(words, where)
        if said.code:
            raise AssertionError(f"{' '.join(words[:3])}: {said.code} {said.err.strip()}")
        return said

    def fired(self):
        path = self.folder / "fired"
        return path.read_text().strip() if path.exists() else None


class Said:
    """Exit code and output of a command."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def has_one_error(self):
        return sum(line.startswith(("error: ", '{"error":')) for line in self.err.splitlines()) == 1


class Operation:
    """A command that writes.

    `words` is the command, in `w`; `peer` the one that it talks to, in `p`. `prepare` makes both folders once.
    `outputs` names what it leaves; `is_whole(case, name)` says whether one is, unless it is as in an honest run.
    `again(case, operation)` runs it once the fault is gone, unless that is with a peer that begins anew and without the
    outputs that are there; `check(case, said)` tells what else is wrong, after either run. `keeps` is a folder that a
    run which failed leaves for the next.
    """

    def __init__(
        self, name, words, outputs, peer=None, prepare=None, is_whole=None, again=None, check=None, old=(), keeps=None
    ):
        self.name, self.words, self.outputs, self.peer, self.keeps = name, words, outputs, peer, keeps
        self.prepare, self.whole, self.repeat, self.check = prepare, is_whole, again, check
        # Outputs that are there before.
        self.old = old

    def build(self, folder, disk):
        """Both folders as they are before, and the outputs of an honest run."""
        case = Case(folder / "before", disk)
        for path in (case.w, case.p):
            path.mkdir(parents=True)
        if self.prepare:
            self.prepare(case)
        for name in self.old:
            (case.w / name).write_text("old\n")
        shutil.copytree(folder / "before", folder / "honest")
        honest = Case(folder / "honest", disk)
        said = self.perform(honest)
        if said.code:
            raise AssertionError(f"{self.name}, without a fault: {said.code} {said.err}")
        self.before, self.honest = case, honest

    def perform(self, case, faulty=False):
        if not self.peer:
            return case.run(self.words, faulty=faulty)
        peer = case.start(self.peer, "p", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            said = case.run(self.words, faulty=faulty)
            # One that nobody called waits for its caller.
            peer.wait(timeout=SECONDS if said.code == 0 else 1)
        except subprocess.TimeoutExpired:
            if said.code == 0:
                return Said(-9, "", "the peer does not end")
        finally:
            peer.kill()
            peer.wait()
        return said

    def is_whole(self, case, name):
        if self.whole:
            return self.whole(case, name)
        return (case.w / name).read_bytes() == (self.honest.w / name).read_bytes()

    def faults(self, case, said, is_cut):
        """What is wrong after a run, in words."""
        if said.code not in ((CUT, 0) if is_cut else (0, 1, 2, 3)):
            yield f"exit code {said.code}: {said.err.strip()[-300:]}"
        if not is_cut and said.code and not said.has_one_error():
            yield f"not one line of error: {said.err.strip()[-300:]!r}"
        for name in self.outputs:
            path = case.w / name
            is_old = name in self.old and path.exists() and path.read_text(errors="replace") == "old\n"
            if said.code == 0 and (is_old or not path.exists()):
                yield f"{name}: not there after success"
            elif path.exists() and not is_old and not self.is_whole(case, name):
                yield f"{name}: half a file of {path.stat().st_size} bytes"
            elif name in self.old and not path.exists():
                yield f"{name}: the old file is gone"
        # What cannot be removed stays, until the next run.
        if not is_cut and "unlink" not in (case.fired() or ""):
            usual = names(self.honest.w) | names(self.before.w)
            left = {name for name in names(case.w) - usual if name.split("/")[0] != self.keeps}
            if left:
                yield f"left over: {', '.join(sorted(left))}"

    def after(self, case, said):
        """What is wrong once the fault is gone and the command has run again."""
        if self.check:
            yield from self.check(case, said)
        is_done = self.outputs and not self.old and all((case.w / name).exists() for name in self.outputs)
        if self.repeat is None and is_done:
            return
        done = (self.repeat or anew)(case, self)
        if done.code:
            yield f"again: exit code {done.code}: {done.err.strip()[-300:]}"
            return
        for name in self.outputs:
            if not (case.w / name).exists() or not self.is_whole(case, name):
                yield f"again: {name} is not whole"
        if self.check:
            yield from self.check(case, done)


def anew(case, operation):
    """The peer begins anew, and what was left as a whole is put away."""
    shutil.rmtree(case.p)
    shutil.copytree(operation.before.p, case.p)
    for name in operation.outputs:
        if name not in operation.old:
            (case.w / name).unlink(missing_ok=True)
    return operation.perform(case)


def names(folder):
    """Files below a folder, but for runs that the next start records."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "pending")
    return {str(path.relative_to(folder)) for path in found}


def one(operation, work, disk, kind, n, keep):
    """Whether the fault came, and what was wrong."""
    folder = work / f"{kind}-{n}"
    shutil.copytree(operation.before.folder, folder)
    case = Case(folder, disk, f"{kind.split('-')[0]}::{n}", str(CUTS.index(kind)) if kind in CUTS else "0")
    try:
        said = operation.perform(case, faulty=True)
        fired = case.fired()
        wrong = list(operation.faults(case, said, kind in CUTS))
        if fired and kind == "short" and said.code:
            wrong.append(f"a short write is no fault: {said.err.strip()[-300:]}")
        if not fired and said.code:
            wrong.append(f"without a fault: exit code {said.code}: {said.err.strip()[-300:]}")
        wrong += operation.after(case, said)
    except (AssertionError, OSError, KeyError, ValueError) as error:
        wrong, fired = [f"{type(error).__name__}: {error}"], case.fired()
    lines = [f"{operation.name}, {kind} at {n} ({fired or 'at the end'}): {what}" for what in wrong]
    if lines and keep:
        shutil.copytree(folder, keep / f"{operation.name.replace(' ', '-')}-{kind}-{n}", dirs_exist_ok=True)
    shutil.rmtree(folder)
    return fired, lines


def all_of(operation, disk, kinds, step, width, keep, pool):
    """Runs with each fault, and lines of what was wrong."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tacit-disk-") as work:
        work = Path(work)
        operation.build(work, disk)

        def series(kind):
            lines, runs = [], 0
            # Other kinds begin elsewhere, so that steps do not miss the same calls.
            calls = range(1 + KINDS.index(kind) % step, MOST, step)
            with ThreadPoolExecutor(width) as some:
                for begin in range(0, len(calls), width):
                    done = list(some.map(lambda n: one(operation, work, disk, kind, n, keep), calls[begin : begin + width]))
                    lines, runs = lines + [line for _, wrong in done for line in wrong], runs + len(done)
                    if not all(fired for fired, _ in done):
                        return runs, lines
            return runs, [*lines, f"{operation.name}, {kind}: no end after {MOST} calls"]

        done = list(pool.map(series, kinds))
    return sum(runs for runs, _ in done), [line for _, lines in done for line in lines], time.monotonic() - begin


def main(arguments=None):
    import catalogue

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args(arguments)
    wanted = [o for o in catalogue.operations() if not options.only or any(word in o.name for word in options.only)]
    with tempfile.TemporaryDirectory(prefix="tacit-disk-") as folder:
        disk = library(folder)
        if not disk or subprocess.run([COMMAND, "--version"], env={"LD_PRELOAD": str(disk)}, check=False).returncode:
            print("left out: needs a C compiler and Linux's seccomp\n1 passed, 0 failed")
            return 0
        passed, failed = 0, 0
        with ThreadPoolExecutor(len(KINDS) * len(wanted)) as pool, ThreadPoolExecutor(options.jobs) as some:
            jobs = [
                (o, some.submit(all_of, o, disk, options.kinds.split(","), options.step, options.width, options.keep, pool))
                for o in wanted
            ]
            for operation, job in jobs:
                runs, lines, seconds = job.result()
                print(f"| {operation.name} | {runs} | {len(lines)} | {seconds:.0f} s", flush=True)
                for line in lines:
                    print(f"FAILED {line}")
                passed, failed = passed + runs - min(runs, len(lines)), failed + len(lines)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
