#!/usr/bin/env python3
"""interoperate.py COMMAND COMMAND: two builds of the command against each other, each on either side: an intersection
with columns, an evaluation by both malicious protocols, and oblivious transfers. A command may be several words, such as an
emulator with its binary. Ends with `N passed, N failed`."""

import shlex
import socket
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Seconds that one job may take, under an emulator as well.
DEADLINE = 180


def words(command):
    """The command's words, with paths that hold in any folder."""
    return [str(Path(word).resolve()) if Path(word).exists() else word for word in shlex.split(command)]


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def both(folder, first, second, job, ours, theirs):
    """Runs a job with `first` listening; returns what both said, or raises."""
    address = free_address()
    sides = [
        [*first, job, "--listen", address, "--identity", "alice.key", "--peer", "bob.pub", *ours],
        [*second, job, "--connect", address, "--identity", "bob.key", "--peer", "alice.pub", *theirs],
    ]
    runs = [
        subprocess.Popen(side, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for side in sides
    ]
    try:
        said = [run.communicate(timeout=DEADLINE) for run in runs]
    finally:
        for run in runs:
            run.kill()
    for run, (_, errors) in zip(runs, said):
        if run.returncode != 0:
            raise AssertionError(f"exit code {run.returncode}: {errors}")
    return [output for output, _ in said]


def intersection(folder, first, second, turn):
    out = f"both{turn}.csv"
    rows = ["--input", "ours.csv", "--key", "id", "--reveal", "payload:b", "--output", out, "--result", "me"]
    gives = ["--input", "theirs.csv", "--key", "id", "--reveal", "payload", "--give", "b", "--result", "peer"]
    both(folder, first, second, "psi", rows, gives)
    found = (folder / out).read_text().splitlines()
    wanted = ["id,a,peer_b" if "peer_b" in found[0] else "id,a,b", *(f"k{at},{at},{at * 2}" for at in range(1500, 2000))]
    assert found == wanted, found[:3]


def evaluation(protocol):
    def run(folder, first, second, _):
        gives = ["add32", "--protocol", protocol, "--role"]
        said = both(
            folder, first, second, "eval", [*gives, "garbler", "--input", "20"], [*gives, "evaluator", "--input", "22"]
        )
        assert all("0x0000002a" in output for output in said), said

    return run


def transfers(folder, first, second, turn):
    sender, receiver = f"sender{turn}.npz", f"receiver{turn}.npz"
    take = ["--role", "receiver", "--count", "5000", "--kind", "cot", "--out", receiver]
    both(folder, first, second, "ot", ["--role", "sender", *take[2:-1], sender], take)
    v, delta, w, u = (
        array(folder / file, name) for file, name in [(sender, "v"), (sender, "delta"), (receiver, "w"), (receiver, "u")]
    )
    blocks = [data[at : at + 16] for data in (v, w) for at in range(0, 80_000, 16)]
    for choice, (ours, theirs) in zip(u, zip(blocks[:5000], blocks[5000:]), strict=True):
        wanted = bytes(x ^ y for x, y in zip(ours, delta)) if choice else ours
        assert theirs == wanted, "w = v + u delta does not hold"


def array(path, name):
    """The bytes of an array in an archive."""
    with zipfile.ZipFile(path) as archive:
        data = archive.read(f"{name}.npy")
    return data[10 + int.from_bytes(data[8:10], "little") :]


def main():
    here, there = (words(command) for command in sys.argv[1:3])
    jobs = {
        "an intersection": intersection,
        "an evaluation by wmk17": evaluation("wmk17"),
        "an evaluation by authenticated": evaluation("authenticated"),
        "oblivious transfers": transfers,
    }
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([*here, "keygen", "--out", "alice.key"], cwd=folder, check=True, capture_output=True)
        subprocess.run([*there, "keygen", "--out", "bob.key"], cwd=folder, check=True, capture_output=True)
        (folder / "ours.csv").write_text("id,a\n" + "".join(f"k{at},{at}\n" for at in range(2000)))
        (folder / "theirs.csv").write_text("id,b\n" + "".join(f"K{at},{at * 2}\n" for at in range(1500, 3500)))
        for turn, (first, second) in enumerate([(here, there), (there, here)]):
            for job, run in jobs.items():
                try:
                    run(folder, first, second, turn)
                    passed += 1
                except (AssertionError, subprocess.TimeoutExpired, OSError) as fault:
                    failed += 1
                    print(f"error: {job}, {first[-1]} listening: {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
