#!/usr/bin/env python3
"""What more threads gain: an intersection of random keys, and one of two CSV files, both sides on this host.

    python3 scripts/scaling.py [--tacit FILE] [--threads 1,2,4,8] [--keys 1048576,16777216] [--rows 10000000]
        [--memory SIZE] [--repeat 3] [--folder DIR]

Prints two tables in Markdown. The files have one column, an e-mail address; half of the rows are common; they are
made once and stand in DIR, which is in memory unless said otherwise. CPU seconds are user and system time of both
sides together; memory is the larger side's. Every result is compared with the number of common rows.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PORT = 20_000 + os.getpid() % 10_000


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [int(number) for number in text.split(",") if number]
    parser.add_argument("--tacit", default="target/release/tacit", help="the command that is measured")
    parser.add_argument("--threads", type=numbers, default=[1, 2, 4, 8], help="threads of each side")
    parser.add_argument("--keys", type=numbers, default=[1 << 20, 1 << 24], help="random keys of each side")
    parser.add_argument("--rows", type=numbers, default=[10_000_000], help="rows of each side's CSV file")
    parser.add_argument("--memory", help="cuts the run into buckets; see `tacit psi --help`")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the median is told")
    parser.add_argument("--folder", default="/dev/shm", help="where files are made")
    return parser.parse_args()


def median(values):
    return sorted(values)[len(values) // 2]


def benchmark(tacit, keys, threads, repeat):
    """Seconds, CPU seconds of both sides, and MiB of an intersection of random keys."""
    command = [tacit, "bench", "psi", "--protocol", "vole", "--count", str(keys), "--threads", str(threads)]
    output = subprocess.run([*command, "--repeat", str(repeat), "--json"], check=True, capture_output=True)
    record = json.loads(output.stdout)
    cpu = record["cpu_ms_local"] + record["cpu_ms_peer"]
    return record["wall_ms"] / 1e3, cpu / 1e3, record["peak_rss_bytes"] / 2**20


def make(path, rows, first):
    """A file of `rows` addresses, numbered from `first` on, in an order of its own."""
    if path.exists():
        return
    blocks = list(range(0, rows, 1000))
    random.Random(first).shuffle(blocks)
    with open(path, "w") as file:
        file.write("email\n")
        for block in blocks:
            end = min(block + 1000, rows)
            file.writelines(f"customer.{first + i:09}@example.com\n" for i in range(block, end))


def finish(process):
    """Waits for a process; its CPU seconds and MiB."""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{process.args[1]} failed: {process.stderr.read().decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def files(tacit, folder, rows, threads, memory):
    """Seconds, CPU seconds of both sides, and MiB of two processes from file to file."""
    for name, first in (("a", 0), ("b", rows // 2)):
        make(folder / f"{name}-{rows}.csv", rows, first)
    output = folder / "both.csv"
    output.unlink(missing_ok=True)
    buckets = ["--memory", memory, "--spill", str(folder)] if memory else []
    common = [tacit, "psi", "--key", "email", "--threads", str(threads), "--quiet", *buckets]
    own = lambda name, peer: ["--identity", str(folder / f"{name}.key"), "--peer", str(folder / f"{peer}.pub")]
    a = [*common, *own("a", "b"), "--listen", f"127.0.0.1:{PORT}", "--input", str(folder / f"a-{rows}.csv")]
    b = [*common, *own("b", "a"), "--connect", f"127.0.0.1:{PORT}", "--input", str(folder / f"b-{rows}.csv")]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    start = time.monotonic()
    sides = [
        subprocess.Popen([*a, "--result", "me", "--output", str(output)], **pipes),
        subprocess.Popen([*b, "--result", "peer"], **pipes),
    ]
    (cpu_a, memory_a), (cpu_b, memory_b) = map(finish, sides)
    seconds = time.monotonic() - start
    with open(output, "rb") as file:
        found = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b"")) - 1
    if found != rows - rows // 2:
        sys.exit(f"{found} rows are common, and {rows - rows // 2} should be")
    return seconds, cpu_a + cpu_b, max(memory_a, memory_b)


def table(title, sizes, threads, run):
    print(f"\n| {title} | threads a side | seconds | CPU seconds, both sides | MiB | against one |")
    print("| --- | --- | --- | --- | --- | --- |")
    for size in sizes:
        one = None
        for count in threads:
            seconds, cpu, memory = run(size, count)
            one = one or seconds
            print(f"| {size:,} | {count} | {seconds:.2f} | {cpu:.1f} | {memory:.0f} | {one / seconds:.2f} |", flush=True)


def main():
    asked = options()
    tacit = str(Path(asked.tacit).resolve())
    print(f"{len(os.sched_getaffinity(0))} cores, medians of {asked.repeat}")
    if asked.keys:
        run = lambda size, threads: benchmark(tacit, size, threads, asked.repeat)
        table("random keys a side", asked.keys, asked.threads, run)
    if not asked.rows:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        folder = Path(folder)
        for name in ("a", "b"):
            subprocess.run([tacit, "keygen", "--out", str(folder / f"{name}.key")], check=True, stdout=subprocess.DEVNULL)

        def run(size, threads):
            runs = [files(tacit, folder, size, threads, asked.memory) for _ in range(asked.repeat)]
            return tuple(median(values) for values in zip(*runs))

        table("rows a side, CSV to CSV", asked.rows, asked.threads, run)


if __name__ == "__main__":
    main()
