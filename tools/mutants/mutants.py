#!/usr/bin/env python3
"""Damages files of every format that the command reads, and looks at what the command makes of them.

    tools/mutants/mutants.py [--count N] [--seed N] [--keep DIR]

For each format a whole file is made with the command itself, and read N times with a few bytes changed, cut
out, doubled or put in, by a seed. Whatever a file holds, the command ends within 20 s and 6 GiB of address
space, with exit code 0, 1 to 4 as its manual says but never for a fault of its own, and with one line of
error where it fails. A signed or sealed file (`UNFORGED`) with any change is never read as a whole one.
Prints a table; the exit code is 0 only if all ended well. --keep puts the files at which it did not there.
"""

import argparse
import gzip
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = os.environ.get("TACIT", str(ROOT / "target" / "debug" / "tacit"))
SECONDS = 20
ADDRESSES = 6 << 30
GARBLE = """const N: usize = 4usize;
struct Bid { amount: u32, valid: bool }
enum Won { Nobody, By(u32) }
fn best(bids: [Bid; 4]) -> u32 {
    let mut top = 0u32;
    for bid in bids { top = if bid.valid && bid.amount > top { bid.amount } else { top }; }
    top /* the highest */
}
pub fn main(a: [Bid; 4], b: [Bid; 4]) -> Won {
    match (best(a), best(b)) { (0u32, _) => Won::Nobody, (x, y) => Won::By(x - y) } // whose is more
}
"""


def zstd(content):
    """A zstd frame with the content in raw blocks."""
    blocks, size = b"", 1 << 16
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    for number, piece in enumerate(pieces):
        blocks += (int(number + 1 == len(pieces)) | len(piece) << 3).to_bytes(3, "little") + piece
    return b"\x28\xb5\x2f\xfd\xa0" + len(content).to_bytes(4, "little") + blocks


def run(words, folder, limit=False):
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

    env = {"PATH": os.environ.get("PATH", ""), "RUST_BACKTRACE": "0"}
    return subprocess.run(
        [COMMAND, *words], cwd=folder, env=env, timeout=SECONDS, capture_output=True, stdin=subprocess.DEVNULL,
        preexec_fn=bound if limit else None,
    )  # fmt: skip


class Format:
    """A format: the file that is damaged, those that lie beside it, and the words that have it read."""

    def __init__(self, name, file, words, others=()):
        self.name, self.file, self.words, self.others = name, file, words, others


# Formats of which no changed file may pass for a whole one: every byte is under a MAC, a signature or a proof.
UNFORGED = {"NISC reply", "dealt seed", "records"}


def make(folder):
    """The whole files of all formats, in `folder`."""

    def tacit(*words):
        done = run(words, folder)
        if done.returncode != 0:
            raise RuntimeError(f"{words}: {done.stderr.decode()}")

    rows = "".join(f"user{i}@example.com,{i},2024-01-{i % 28 + 1:02}\n" for i in range(200))
    table = ("email,age,since\n" + rows + '"quoted ""x""@example.com",7,\n').encode()
    (folder / "t.csv").write_bytes(table)
    (folder / "t.csv.gz").write_bytes(gzip.compress(table, mtime=0))
    (folder / "t.csv.zst").write_bytes(zstd(table))
    for name in ("t.arrow", "t.parquet"):
        shutil.copy(ROOT / "crates" / "tacit-data" / "tests" / "it" / "files" / name, folder / name)
    (folder / "p.garble.rs").write_text(GARBLE)
    tacit("circuit", "export", "add8", "--output", "add8.txt")
    tacit("keygen", "--out", "alice.key")
    tacit("keygen", "--out", "bob.key")
    tacit("ot", "deal", "--count", "1000", "--sender", "s.seed", "--receiver", "r.seed")
    tacit("tags", "publish", "--input", "t.csv", "--key", "email", "--identity", "alice.key",
          "--out", "t.tags", "--private", "t.oprf")  # fmt: skip
    (folder / "choices.txt").write_text("10110" * 10)
    (folder / "pairs.txt").write_text("".join(f"{i:032x} {i + 99:032x}\n" for i in range(50)))
    tacit("nisc", "keygen", "--count", "50", "--out", "n.key")
    tacit("nisc", "answer", "--public", "n.pub", "--key", "a.key", "--out", "answer")
    tacit("nisc", "ask", "--key", "n.key", "--choices", "choices.txt", "--out", "question")
    for name in ("n", "a"):
        shutil.copy(folder / f"{name}.key", folder / f"{name}-asked.key")
    tacit("nisc", "reply", "--key", "a-asked.key", "--public", "n.pub", "--question", "question",
          "--messages", "pairs.txt", "--out", "reply")  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "policy.toml").write_text(
        f'version = 1\nlisten = "{address}"\nidentity = "alice.key"\nstate = "state"\n'
        '[peers.bob]\nkey = "bob.pub"\n[sources.t]\ninput = "t.csv"\nkey = ["email"]\nrows_in_total = 5_000\n'
        '[jobs.rows]\nsource = "t"\nallow = ["bob"]\nreveal = ["rows"]\nresult = ["peer"]\n'
        'max_peer_keys = 2_000\nruns_a_day = 1\nhours = ["daily 00:00-24:00"]\nexpires = 2999-06-30\n'
    )
    service = subprocess.Popen([COMMAND, "serve", "--policy", "policy.toml"], cwd=folder, stderr=subprocess.DEVNULL)
    try:
        tacit("request", "rows", "--connect", address, "--identity", "bob.key", "--peer", "alice.pub",
              "--input", "t.csv", "--key", "email", "--output", "both.csv", "--connect-timeout", "20", "--yes")  # fmt: skip
    finally:
        service.terminate()
        service.wait()
    shutil.copy(folder / "bob.records" / "records.jsonl", folder / "records.jsonl")


def formats():
    check = ["check", "--key", "email", "--input"]
    nisc = ("n.key", "n.pub", "a.key", "answer", "question", "reply", "choices.txt", "pairs.txt")
    opening = ["nisc", "open", "--key", "n.key", "--choices", "choices.txt", "--answer", "answer",
               "--question", "question", "--reply", "reply", "--out", "opened"]  # fmt: skip
    replying = ["nisc", "reply", "--key", "a.key", "--public", "n.pub", "--question", "question",
                "--messages", "pairs.txt", "--out", "replied"]  # fmt: skip
    answering = ["nisc", "answer", "--public", "n.pub", "--key", "new.key", "--out", "answered"]
    return [
        Format("Arrow", "t.arrow", [*check, "t.arrow"]),
        Format("Parquet", "t.parquet", [*check, "t.parquet"]),
        Format("CSV", "t.csv", [*check, "t.csv"]),
        Format("CSV in gzip", "t.csv.gz", [*check, "t.csv.gz"]),
        Format("CSV in zstd", "t.csv.zst", [*check, "t.csv.zst"]),
        Format("Garble program", "p.garble.rs", ["circuit", "stats", "p.garble.rs"]),
        Format("Bristol circuit", "add8.txt", ["circuit", "stats", "add8.txt"]),
        Format("public key", "alice.pub", ["fingerprint", "alice.pub"]),
        Format("private key", "alice.key", ["fingerprint", "alice.key"]),
        Format("dealt seed", "s.seed", ["ot", "expand", "--seed", "s.seed", "--out", "s.npz"]),
        Format("tag file", "t.tags", ["tags", "info", "t.tags"]),
        Format("NISC public key", "n.pub", answering, nisc),
        Format("NISC key", "n.key", opening, nisc),
        Format("NISC answer", "answer", opening, nisc),
        Format("NISC question", "question", replying, nisc),
        Format("NISC reply", "reply", opening, nisc),
        Format("policy", "policy.toml", ["serve", "--check", "--policy", "policy.toml"], ("alice.key", "bob.pub", "t.csv")),
        Format("records", "records.jsonl", ["audit", "verify", "records.jsonl", "--key", "bob.pub"], ("bob.pub",)),
    ]


def damaged(content, seed):
    """The content with one to four changes."""
    chance = random.Random(seed)
    content = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        length = len(content)
        # What a format says of itself mostly stands at its ends.
        near = min(length, 1024)
        at = chance.choice((chance.randrange(length + 1), length - chance.randrange(near + 1), chance.randrange(near + 1)))
        some = 1 << chance.randrange(8)
        kind = chance.randrange(8)
        if kind < 2:
            content[at : at + 1] = bytes(byte ^ 1 << chance.randrange(8) for byte in content[at : at + 1])
        elif kind == 2:
            content[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 3:
            content[at : at + 4] = chance.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80"))
        elif kind == 4:
            del content[at : at + some]
        elif kind == 5:
            content[at:at] = content[at : at + some]
        elif kind == 6:
            content[at:at] = chance.randbytes(some)
        else:
            del content[at:]
        if not content:
            return b""
    return bytes(content)


def fault(done, changed, name):
    """What is wrong with how a run ended, or None."""
    said = done.stderr.decode(errors="replace")
    if "internal fault" in said or "panicked" in said:
        return "an internal fault"
    if done.returncode == 0:
        return "a changed file passes" if changed and name in UNFORGED else None
    if done.returncode not in (1, 2, 3, 4):
        return f"exit code {done.returncode}"
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if len(errors) != 1 or not said.splitlines()[-1].startswith("error: "):
        return "not one line of error at the end"
    if len(errors[0]) > 2100:
        return "a line of error without bound"
    return "exit code 1" if done.returncode == 1 else None


def one(whole, each, seed, keep):
    """Reads one damaged file, or the whole one without a seed; returns the exit code and what is wrong, if anything."""
    asked = each.words[1] == "open"
    content = (whole / ("n-asked.key" if asked and each.file == "n.key" else each.file)).read_bytes()
    bad = content if seed is None else damaged(content, f"{each.name} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for other in each.others:
            shutil.copy(whole / other, folder / other)
        if asked:
            shutil.copy(whole / "n-asked.key", folder / "n.key")
        (folder / each.file).write_bytes(bad)
        # A secret key that others may read is refused whatever it holds.
        (folder / each.file).chmod(0o600)
        try:
            done = run(each.words, folder, limit=True)
        except subprocess.TimeoutExpired:
            code, what = "none", f"no end within {SECONDS} s"
        else:
            code, what = str(done.returncode), fault(done, bad != content, each.name)
    if what and keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{each.name.replace(' ', '-')}-{seed}-{each.file}").write_bytes(bad)
    return code, what


def campaign(count, seed=0, keep=None):
    """`count` damaged files, spread over the formats. Returns the table's lines and the faults."""
    lines, faults = [], []
    every = formats()
    with tempfile.TemporaryDirectory() as whole, ThreadPoolExecutor(os.cpu_count()) as pool:
        whole = Path(whole)
        make(whole)
        for each in every:
            code, what = one(whole, each, None, None)
            if code != "0":
                raise RuntimeError(f"{each.name}: the whole file is not read: {what}")
            start, runs = time.monotonic(), -(-count // len(every))
            seeds = range(seed, seed + runs)
            done = list(pool.map(lambda number: one(whole, each, number, keep), seeds))
            codes = [sum(code == wanted for code, _ in done) for wanted in "0234"]
            bad = [f"{each.name}, seed {number}: {what}" for number, (_, what) in zip(seeds, done) if what]
            faults += bad
            lines.append(f"| {each.name} | {runs} | " + " | ".join(map(str, codes)) + f" | {len(bad)} |")
            print(f"{lines[-1]}  ({time.monotonic() - start:.0f} s)", flush=True)
    return lines, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    print("| format | files | read | usage | input | peer | faults |\n| --- | --- | --- | --- | --- | --- | --- |")
    lines, faults = campaign(options.count, options.seed, options.keep)
    print("\n".join(faults[:50]))
    # As the runner of all tests counts: one test a format.
    failed = sum(not line.endswith("| 0 |") for line in lines)
    print(f"{len(lines) - failed} passed, {failed} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
