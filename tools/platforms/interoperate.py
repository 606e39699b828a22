#!/usr/bin/env python3
"""interoperate.py COMMAND COMMAND: two builds of the command against each other, each on either side: an intersection
with columns, an evaluation by both malicious protocols, and oblivious transfers. A command may be several words, such as an
emulator with its binary. Ends with `N passed, N failed`."""

import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
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


def both(sides, job, ours, theirs):
    """Runs a job, the first of `sides` listening; returns what both printed, or raises."""
    address = free_address()
    runs = []
    for side, peer, door, words in zip(sides, reversed(sides), ("--listen", "--connect"), (ours, theirs)):
        key, pub = f"{side.name}.key", f"{peer.name}.pub"
        command = [*side.command, job, door, address, "--identity", key, "--peer", pub, *words]
        runs.append(
            subprocess.Popen(command, cwd=side.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    end = time.monotonic() + DEADLINE
    # A side whose peer has failed would wait for it to call again.
    while any(run.poll() is None for run in runs) and not any(run.poll() for run in runs) and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.5 if any(run.poll() for run in runs) else 0)
    hung = [run.poll() is None for run in runs]
    for run in runs:
        run.kill()
    said = [run.communicate() for run in runs]
    if any(run.returncode for run in runs):
        told = "; ".join(f"{'stopped' if late else run.returncode}: {errors}" for run, late, (_, errors) in zip(runs, hung, said))
        raise AssertionError(f"exit codes and errors: {told}")
    return [output for output, _ in said]


def intersection(sides, turn):
    out = f"both{turn}.csv"
    rows = ["--input", "listener.csv", "--key", "id", "--reveal", "payload:b", "--output", out, "--result", "me"]
    gives = ["--input", "caller.csv", "--key", "id", "--reveal", "payload", "--give", "b", "--result", "peer"]
    both(sides, "psi", rows, gives)
    found = (sides[0].folder / out).read_text().splitlines()
    wanted = ["id,a,peer_b" if "peer_b" in found[0] else "id,a,b", *(f"k{at},{at},{at * 2}" for at in range(1500, 2000))]
    assert found == wanted, found[:3]


def evaluation(protocol):
    def run(sides, _):
        gives = ["add32", "--protocol", protocol, "--role"]
        said = both(sides, "eval", [*gives, "garbler", "--input", "20"], [*gives, "evaluator", "--input", "22"])
        assert all("0x0000002a" in output for output in said), said

    return run


def transfers(sides, turn):
    sender, receiver = f"sender{turn}.npz", f"receiver{turn}.npz"
    take = ["--role", "receiver", "--count", "5000", "--kind", "cot", "--out", receiver]
    both(sides, "ot", ["--role", "sender", *take[2:-1], sender], take)
    v, delta, w, u = (
        array(side.folder / file, name)
        for side, file, name in [
            (sides[0], sender, "v"),
            (sides[0], sender, "delta"),
            (sides[1], receiver, "w"),
            (sides[1], receiver, "u"),
        ]
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


class Side:
    """A build of the command, in a folder of its own with its key: an emulated system's locks and rights are not the
    host's, so that in one folder either would remove the other's unfinished files."""

    def __init__(self, name, command, above):
        self.name, self.command, self.folder = name, words(command), above / name
        self.folder.mkdir()
        for file, text in [
            ("listener.csv", "id,a\n" + "".join(f"k{at},{at}\n" for at in range(2000))),
            ("caller.csv", "id,b\n" + "".join(f"K{at},{at * 2}\n" for at in range(1500, 3500))),
        ]:
            (self.folder / file).write_text(text)
        made = [*self.command, "keygen", "--out", f"{name}.key"]
        subprocess.run(made, cwd=self.folder, check=True, capture_output=True)


def main():
    jobs = {
        "an intersection": intersection,
        "an evaluation by wmk17": evaluation("wmk17"),
        "an evaluation by authenticated": evaluation("authenticated"),
        "oblivious transfers": transfers,
    }
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        sides = [Side(side, command, Path(name)) for side, command in zip(("alice", "bob"), sys.argv[1:3])]
        for side, peer in zip(sides, reversed(sides)):
            shutil.copy(side.folder / f"{side.name}.pub", peer.folder)
        for turn in range(2):
            for job, run in jobs.items():
                try:
                    run(sides, turn)
                    passed += 1
                except (AssertionError, OSError) as fault:
                    failed += 1
                    print(f"error: {job}, {sides[0].command[-1]} listening: {fault}")
            sides.reverse()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
