#!/usr/bin/env python3
"""Damages files of every format that the command reads, and looks at what the command makes of them.

    tools/mutants/mutants.py [--count N] [--seed N] [--keep DIR] [--jobs N] [--only FORMAT]...

A whole file of each format is made and then read with a few bytes changed, cut out, doubled or put in, by a seed. Of
what is compressed or has records (`tables.py`) three in four are changed within, and packed again with the right
lengths and checksums. Whatever a file holds, the command ends within 20 s and 6 GiB of address space, with exit code
0, 1 to 4 as its manual says but never for a fault of its own, and with one line of error where it fails. A signed or
sealed file (`UNFORGED`) with any change is never read as a whole one.
Prints a table; the exit code is 0 only if all ended well. --keep puts the files at which it did not there, and
--only reads files of formats whose names contain one of these words.
"""

import argparse
import bz2
import gzip
import json
import lzma
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import tables

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


def run(words, folder, limit=False):
    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

    env = {"PATH": os.environ.get("PATH", ""), "RUST_BACKTRACE": "0"}
    return subprocess.run(
        [COMMAND, *words], cwd=folder, env=env, timeout=SECONDS, capture_output=True, stdin=subprocess.DEVNULL,
        check=False, preexec_fn=bound if limit else None,
    )  # fmt: skip


class Format:
    """A format: the file that is damaged, those next to it, the words that have it read, and what changes it within."""

    def __init__(self, name, file, words, others=(), within=None):
        self.name, self.file, self.words, self.others, self.within = name, file, words, others, within


# Formats of which no changed file may pass for a whole one: every byte is under a MAC, a signature or a proof.
UNFORGED = {"NISC reply", "dealt seed", "records"}


def json_lines():
    """A table in JSON lines, with cells of every kind."""
    other = [{"of": [1, 2]}, -1.5e3, None, True, 0.25, "\u00e9\U0001f600", 123_456_789_012_345_678_901, []]
    rows = ({"email": f"user{i}@example.com", "age": i, "other": other[i % len(other)]} for i in range(200))
    return "".join(json.dumps(row) + "\n" for row in rows)


def make(folder):
    """The whole files of all formats, in `folder`."""

    def tacit(*words):
        done = run(words, folder)
        if done.returncode != 0:
            raise RuntimeError(f"{words}: {done.stderr.decode()}")

    rows = "".join(f"user{i}@example.com,{i},2024-01-{i % 28 + 1:02}\n" for i in range(200))
    table = ("email,age,since\n" + rows + '"quoted ""x""@example.com",7,\n').encode()
    files = ROOT / "crates" / "tacit-data" / "tests" / "it" / "files"
    arrow, parquet = ((files / name).read_bytes() for name in ("t.arrow", "t.parquet"))
    accents = table.decode().replace("user", "usér").replace("quoted", "€")
    whole = {
        "t.arrow": arrow, "t.arrows": tables.arrow_stream(arrow), "t.parquet": parquet, "t.csv": table,
        "t.csv.gz": gzip.compress(table, mtime=0), "t.csv.zst": tables.zstd(table), "t.csv.xz": lzma.compress(table),
        "t.csv.bz2": bz2.compress(table), "t.csv.zip": tables.archive([("t.csv", table)]),
        "t.jsonl.zip": tables.archive([("t.jsonl", json_lines().encode())]), "t.utf16.csv": accents.encode("utf-16"),
        "t.1252.csv": accents.encode("cp1252"), "t.jsonl": json_lines().encode(), "t.xlsx": tables.xlsx(),
        "t.xlsb": tables.xlsb(), "t.xls": tables.xls(),
    }  # fmt: skip
    for name, content in whole.items():
        (folder / name).write_bytes(content)
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
        Format("Arrow", "t.arrow", [*check, "t.arrow"], within=tables.in_arrow),
        Format("Arrow stream", "t.arrows", [*check, "t.arrows"], within=tables.in_arrow),
        Format("Parquet", "t.parquet", [*check, "t.parquet"]),
        Format("CSV", "t.csv", [*check, "t.csv"]),
        Format("CSV in UTF-16", "t.utf16.csv", [*check, "t.utf16.csv", "--encoding", "utf-16le"]),
        Format("CSV in windows-1252", "t.1252.csv", [*check, "t.1252.csv", "--encoding", "windows-1252"]),
        Format("CSV in gzip", "t.csv.gz", [*check, "t.csv.gz"], within=tables.in_gzip),
        Format("CSV in zstd", "t.csv.zst", [*check, "t.csv.zst"], within=tables.in_zstd),
        Format("CSV in xz", "t.csv.xz", [*check, "t.csv.xz"], within=tables.in_xz),
        Format("CSV in bzip2", "t.csv.bz2", [*check, "t.csv.bz2"], within=tables.in_bzip2),
        Format("CSV in zip", "t.csv.zip", [*check, "t.csv.zip"], within=tables.in_zip),
        Format("JSON lines", "t.jsonl", [*check, "t.jsonl"]),
        Format("JSON lines in zip", "t.jsonl.zip", [*check, "t.jsonl.zip"], within=tables.in_zip),
        Format("Excel (.xlsx)", "t.xlsx", [*check, "t.xlsx"], within=tables.in_zip),
        Format("Excel (.xlsb)", "t.xlsb", [*check, "t.xlsb"], within=tables.in_xlsb),
        Format("Excel (.xls)", "t.xls", [*check, "t.xls"], within=tables.in_xls),
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


# Numbers in text that are at an end of what something holds, or that no number is.
NUMBERS = (
    b"0",
    b"-1",
    b"4294967295",
    b"4294967296",
    b"9223372036854775808",
    b"18446744073709551615",
    b"9" * 40,
    b"1e999",
    b"XFD9",
)


def changed(content, chance):
    """The content with one to four changes."""
    content = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        length = len(content)
        # What a format says of itself mostly stands at its ends.
        near = min(length, 1024)
        at = chance.choice((chance.randrange(length + 1), length - chance.randrange(near + 1), chance.randrange(near + 1)))
        some = 1 << chance.randrange(8)
        kind = chance.randrange(10)
        if kind < 2:
            content[at : at + 1] = bytes(byte ^ 1 << chance.randrange(8) for byte in content[at : at + 1])
        elif kind == 2:
            content[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 3:
            width = chance.choice((2, 4, 4, 8))
            content[at : at + width] = tables.extreme(chance, width)
        elif kind == 4:
            del content[at : at + some]
        elif kind == 5:
            content[at:at] = content[at : at + some]
        elif kind == 6:
            content[at:at] = chance.randbytes(some)
        elif kind == 7:
            del content[at:]
        else:
            number = re.compile(rb"[0-9]+").search(content, at)
            place = slice(*number.span()) if number else slice(at, at + some)
            content[place] = chance.choice(NUMBERS)
        if not content:
            return b""
    return bytes(content)


def damaged(each, content, seed):
    """The content of a file of this format, changed."""
    chance = random.Random(f"{each.name} {seed}")
    if each.within and chance.randrange(4):
        return each.within(content, chance, lambda part: changed(part, chance))
    return changed(content, chance)


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


def one(whole, each, keep, seed):
    """Reads one damaged file, or the whole one without a seed; returns the exit code and what is wrong, if anything."""
    asked = each.words[1] == "open"
    content = (whole / ("n-asked.key" if asked and each.file == "n.key" else each.file)).read_bytes()
    bad = content if seed is None else damaged(each, content, seed)
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
        (keep / f"{seed}-{each.file}").write_bytes(bad)
    return code, what


def campaign(options):
    """`--count` damaged files, spread over the formats. Returns the table's lines and the faults."""
    lines, faults = [], []
    count, seed, keep = options.count, options.seed, options.keep
    every = [each for each in formats() if not options.only or any(word in each.name for word in options.only)]
    with tempfile.TemporaryDirectory() as whole, ThreadPoolExecutor(options.jobs) as pool:
        whole = Path(whole)
        make(whole)
        for each in every:
            code, what = one(whole, each, None, None)
            if code != "0":
                raise RuntimeError(f"{each.name}: the whole file is not read: {what}")
            start, runs = time.monotonic(), -(-count // len(every))
            seeds = range(seed, seed + runs)
            done = list(pool.map(partial(one, whole, each, keep), seeds))
            codes = [sum(code == wanted for code, _ in done) for wanted in "0234"]
            bad = [f"{each.name}, seed {number}: {what}" for number, (_, what) in zip(seeds, done) if what]
            faults += bad
            lines.append(f"| {each.name} | {runs} | " + " | ".join(map(str, codes)) + f" | {len(bad)} |")
            most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
            print(f"{lines[-1]}  ({time.monotonic() - start:.0f} s; so far {most} MiB at most)", flush=True)
    return lines, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    print("| format | files | read | usage | input | peer | faults |\n| --- | --- | --- | --- | --- | --- | --- |")
    lines, faults = campaign(options)
    print("\n".join(faults[:50]))
    # As the runner of all tests counts: one test a format.
    failed = sum(not line.endswith("| 0 |") for line in lines)
    print(f"{len(lines) - failed} passed, {failed} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
