#!/usr/bin/env python3
"""Runs under valgrind, by portable kernels and by those for AVX2, the widest that it knows.

    tools/valgrind/run.py undefined [--quick] [CASE]...  what branches or indexes on a secret
    tools/valgrind/run.py work [--update] [JOB]...  instructions of the main jobs, against benches/work.json

The binaries are linked statically, as `make dist` links the command: what they run then depends on the compiler, on
Cargo.lock and on our code, and not on the machine's C library.

`work` fails where a count is further than 3 % from the file's, in either direction: what became quicker is recorded
with `make work-update`, or the next one to make it slower again would not be noticed. Where the compiler is another
one than the file's, differences are printed and fail nothing.

Where valgrind or the C compiler for static binaries is missing, it says so and ends well.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "benches" / "work.json"
TARGET = "x86_64-unknown-linux-musl"
KERNELS = ["portable", "avx2"]
MOST = 0.03
# By portable kernels these take ten times the instructions, nearly all in AES and products, which others count too.
AVX2_ALONE = ("ot ferret", "ot silent", "psi ", "eval authenticated")


def missing():
    """What these runs need and this machine lacks, or None."""
    if os.uname().machine != "x86_64":
        return "a processor of the kind x86-64"
    tools = {"valgrind": "valgrind", "musl-gcc": "musl-tools"}
    lacking = [f"{tool} (Debian's {package})" for tool, package in tools.items() if not shutil.which(tool)]
    return " and ".join(lacking) or None


def kernels():
    flags = re.search(r"^flags.*$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    if flags and " avx2" in flags[0]:
        return KERNELS
    print("left out: this processor has no AVX2")
    return KERNELS[:1]


def build():
    """The folder of the binaries. With the command's features, so that they share what `make dist` compiles."""
    subprocess.run(["rustup", "target", "add", TARGET], capture_output=True, check=False)
    command = [os.environ.get("CARGO", "cargo"), "build", "--locked", "--profile", "demo", "--target", TARGET]
    command += ["-p", "tacit-cli", "-p", "tacit-valgrind", "--bin", "undefined", "--bin", "work", "--features", "tacit-cli/postgres,tacit-cli/s3"]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target" / TARGET / "demo"


def valgrind(kernel, options, binary, words, logs):
    log = logs / f"{binary.name}-{kernel}.log"
    command = ["valgrind", f"--log-file={log}", *options, str(binary), *words]
    env = {**os.environ, "TACIT_SIMD": kernel}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    return run, log


def undefined(folder, logs, names, quick):
    options = ["--error-limit=no", "--num-callers=20", "--fair-sched=yes"]
    options += [f"--suppressions={ROOT / 'tools/valgrind/declared.supp'}"]
    run_one = lambda kernel: valgrind(kernel, options, folder / "undefined", names, logs)
    failed = passed = 0
    chosen = kernels()[-1:] if quick else kernels()
    with ThreadPoolExecutor() as pool:
        for kernel, (run, log) in zip(chosen, pool.map(run_one, chosen)):
            print(f"{kernel} kernels:")
            print("".join(f"  {line}\n" for line in run.stdout.splitlines()), end="")
            cases = re.findall(r"^(.+): \d+( \(wrong\))?$", run.stdout, re.MULTILINE)
            wrong = sum(bool(bad) for _, bad in cases)
            if run.returncode and not wrong:
                print(f"  ended by itself:\n{run.stderr[-2000:]}")
                wrong = 1
            if wrong:
                print(f"  the places: {log}")
            passed, failed = passed + len(cases) - min(wrong, len(cases)), failed + wrong
    print(f"{passed} passed, {failed} failed")
    return failed


def count(kernel, name, binary, logs):
    """Instructions of one job, in a process of its own: what runs before it does not count."""
    out = logs / f"work-{kernel}-{name.replace(' ', '-')}"
    for old in logs.glob(f"{out.name}*"):
        old.unlink()
    log = out.with_suffix(".log")
    options = ["--tool=callgrind", "--fair-sched=yes", f"--callgrind-out-file={out}"]
    command = ["valgrind", f"--log-file={log}", *options, str(binary), name]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, "TACIT_SIMD": kernel}, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"error: {name} by {kernel} kernels: {run.stderr[-2000:]}")
    text = Path(f"{out}.1").read_text()
    return int(re.search(r"^totals: (\d+)", text, re.MULTILINE)[1])


def work(folder, logs, names, update):
    version = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    # Outside of valgrind the jobs run at once, and say what they are called.
    jobs = subprocess.run([folder / "work", *names], capture_output=True, text=True, check=True).stdout.splitlines()
    chosen = kernels()
    counted = {k: [job for job in jobs if k != "portable" or not job.startswith(AVX2_ALONE)] for k in chosen}
    pairs = [(kernel, name) for kernel in chosen for name in counted[kernel]]
    with ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        made = dict(zip(pairs, pool.map(lambda pair: count(*pair, folder / "work", logs), pairs)))
    found = {kernel: {name: made[kernel, name] for name in counted[kernel]} for kernel in chosen}
    if update:
        # Of those that were not counted now the earlier counts stay.
        known = json.loads(RECORD.read_text())["instructions"] if names else {}
        found = {kernel: {**known.get(kernel, {}), **found[kernel]} for kernel in chosen}
        record = {"rustc": version, "instructions": found}
        RECORD.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        print(f"recorded: {RECORD.relative_to(ROOT)}")
        return 0
    record = json.loads(RECORD.read_text())
    same = record["rustc"] == version
    if not same:
        print(f"the file is by {record['rustc']}, this is {version}: differences fail nothing")
    passed = failed = 0
    for kernel in chosen:
        told = record["instructions"][kernel]
        known = [name for name in told if not names or name in found[kernel]]
        for name in [*known, *(name for name in found[kernel] if name not in told)]:
            before, now = told.get(name), found[kernel].get(name)
            change = now / before - 1 if before and now else None
            is_near = change is not None and abs(change) <= MOST
            passed, failed = passed + is_near, failed + (not is_near)
            said = f"{change:+.2%}" if change is not None else "not on both lists"
            print(f"{kernel:<9}{name:<28}{now or 0:>16,} {said}{'' if is_near else '  <<<'}")
    print(f"{passed} passed, {failed} failed")
    if failed and same:
        print("more than 3 % away: slower ones are to be mended, or recorded with a reason: make work-update")
    return failed if same else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["undefined", "work"])
    parser.add_argument("--update", action="store_true", help="writes benches/work.json anew")
    parser.add_argument("--quick", action="store_true", help="undefined: only with the widest kernels")
    parser.add_argument("names", nargs="*", help="only what begins so")
    options = parser.parse_args()
    if lacking := missing():
        print(f"left out: {options.what} needs {lacking}, which is missing here")
        return 0
    folder, logs = build(), ROOT / "target" / "valgrind"
    logs.mkdir(parents=True, exist_ok=True)
    if options.what == "undefined":
        return int(undefined(folder, logs, options.names, options.quick) > 0)
    return int(work(folder, logs, options.names, options.update) > 0)


if __name__ == "__main__":
    sys.exit(main())
