#!/usr/bin/env python3
"""What each base OT costs an intersection and an OT extension: Markdown tables from alternating runs of `tacit bench`.

Each round runs every base OT once, in another order, so that a busy spell of the machine falls on all alike. A run's
figure is the median of its repeats, a row's the median over rounds of what the run took in all, set-up included.
"""

import argparse
import json
import os
import random
import statistics
import subprocess

MALICIOUS = ["roted", "bdgm19", "csw20", "mr19", "mrr21", "pvw08"]
CLASSICAL = {"csw20", "mr19", "mrr21", "pvw08", "co15"}


def bench(tacit, kernels, job, base):
    env = {**os.environ, "TACIT_SIMD": kernels}
    command = [tacit, "--json", "bench", *job, "--base-ot", base]
    said = subprocess.run(command, env=env, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(said.stdout)


def table(tacit, kernels, job, bases, rounds):
    runs = {base: [] for base in bases}
    for _ in range(rounds):
        for base in random.sample(bases, len(bases)):
            runs[base].append(bench(tacit, kernels, job, base))
    milliseconds = {b: [r["wall_ms"] + r["setup_ms"] for r in rs] for b, rs in runs.items()}
    medians = {b: statistics.median(ms) for b, ms in milliseconds.items()}
    print(f"\n`tacit bench {' '.join(job)}`, {kernels}, {rounds} alternating rounds:\n")
    print("| base OT | ms | range | peak MiB | roted less this, ms |\n| --- | --- | --- | --- | --- |")
    for base in bases:
        ms, peak = milliseconds[base], max(r["peak_rss_bytes"] for r in runs[base]) / 2**20
        pairs = zip(milliseconds["roted"], ms)
        paired = f"{statistics.median(r - m for r, m in pairs):.2f}" if base in CLASSICAL else "–"
        print(f"| {base} | {medians[base]:.2f} | {min(ms):.2f}–{max(ms):.2f} | {peak:.1f} | {paired} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tacit", default="target/release/tacit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--large", action="store_true", help="the extension and the large set instead of the paper's tables")
    args = parser.parse_args()
    if not args.large:
        job = ["psi", "--count", "2048", "--repeat", "5"]
        for kernels in ["portable", "avx2", "avx512"]:
            table(args.tacit, kernels, job, MALICIOUS, args.rounds)
        semi_honest = ["psi", "--count", "2048", "--repeat", "5", "--security", "semi-honest"]
        table(args.tacit, "avx512", semi_honest, ["roted", "csw20", "mrr21"], args.rounds)
        return
    for protocol in ["kos", "iknp"]:
        job = ["ot", "--protocol", protocol, "--count", str(1 << 20), "--repeat", "1"]
        bases = ["roted", "csw20", "mrr21"] + (["co15"] if protocol == "iknp" else [])
        table(args.tacit, "avx512", job, bases, args.rounds)
    table(args.tacit, "avx512", ["psi", "--count", str(1 << 18), "--repeat", "1"], ["roted", "mrr21"], args.rounds)


if __name__ == "__main__":
    main()
