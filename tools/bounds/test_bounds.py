#!/usr/bin/env python3
"""Compares the bounds that the code computes with those of `bounds.py`, and both with the numbers of the documents.

The code's come from `tacit bench bounds --json`. Ends with `N passed, N failed`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from math import log2
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import bounds as b  # noqa: E402
import documents  # noqa: E402
from verdicts import told  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
# Pages that make promises: each chance in them is tied to a bound, or said to be none.
PROMISING = ["SECURITY.md", "docs/security-notes.md", *(f"docs/proofs/{page.name}" for page in ROOT.glob("docs/proofs/*.md"))]


def exported():
    words = ["--json", "bench", "bounds"]
    if "TACIT" in os.environ:
        command = [os.environ["TACIT"], *words]
    else:
        cargo = os.environ.get("CARGO", "cargo")
        command = [cargo, "run", "--quiet", "--package", "tacit-cli", "--bin", "tacit", "--", *words]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def of_the_code(code):
    """(what, whether it holds) for each number that the code computes itself."""
    ours, bounds = b.all_bounds(code), code["bounds"]
    for line in bounds["authenticated"]:
        name = f"authenticated garbling, one of {line['sessions']} sessions"
        bits = b.sessions_bits(line["sessions"])
        yield f"{name}: {line['bits']} bits", line["bits"] == bits
        yield f"{name}: messages of {line['message']} bits", line["message"] == b.message_bits(bits)
        for size, after in zip(line["sizes"], [*line["sizes"][1:], None]):
            last = after["from"] - 1 if after else code["constants"]["authenticated"]["window"]
            for buckets in (size["from"], last):
                expected = b.bucket_size(buckets, bits, b.together(buckets))
                yield f"{name}: {size['triples']} triples in each of {buckets} buckets, not {expected}", size["triples"] == expected
    for line in bounds["probe"]:
        width = b.probe_width(line["rows"], code["constants"]["rho"] + code["constants"]["wmk17"]["margin"])
        yield f"an encoding of {line['rows']} bits by {line['columns']} columns, not {width}", line["columns"] == width
    for line in bounds["tested"]:
        name = f"{line['protocol']}.{line['part']}.{line['announced']}.{line['calls']}"
        value = ours[name].value
        if line["protocol"] == "sorted":
            # The code's is a simple bound over the exact one.
            holds = value <= line["tested"] <= value + 2 * 29
        else:
            holds = line["tested"] == value
        yield f"{name}: {line['tested']}, not {value}", holds
    for line in bounds["stores"]:
        value = ours[f"store.{line['keys']}"].value
        what = f"a store of {line['keys']} keys: 2^{line['log2']:.2f}, not 2^{value:.2f} or a little more"
        # Whole keys in the fullest bin, and a rounded logarithm.
        yield what, value - 0.01 <= line["log2"] <= value + 0.2
    for line in bounds["buckets"]:
        for tested in line["tested"]:
            for what in ("attempt", "bucket", "run"):
                name = f"buckets.{line['keys']}.{line['buckets']}.{tested['calls']}.{what}"
                yield f"{name}: {tested[what]}, not {ours[name].value}", tested[what] == ours[name].value
        rho, runs = code["constants"]["rho"], log2(line["buckets"]) + 2
        yield f"{line['buckets']} buckets: an attempt errs with 2^{line['log2']:.2f}", line["log2"] <= -rho - runs
    for line in bounds["errors"]:
        what = f"{line['protocol']}, {line['keys']} keys, {line['security']}: an honest run errs with 2^{line['log2']:.2f}"
        yield what, line["log2"] <= -code["constants"]["rho"]
    for line in code["bounds"]["tags"]:
        bits = 40 + (line["keys"] - 1).bit_length() + (line["queries"] - 1).bit_length()
        yield f"a tag of {line['bits']} bits, not {bits}", line["bits"] == bits
    for line in code["constants"]["lpn"]["sets"]:
        yield f"{line['name']} claims {line['bits']} bits", line["bits"] >= 136


# Sizes that `tacit bench bounds` does not export, where the sources have them.
SIZES = [
    ("crates/tacit-ot/src/extension/kos.rs", "const BATCH: usize = 512;", b.KOS_BATCH == 512 * 128 - 128),
    ("crates/tacit-ot/src/silent/tree/half.rs", "const TILES: usize = 8;", b.KEY == 8 * 4),
    ("crates/tacit-ot/src/silent/dual_lpn/noise.rs", "RangeInclusive<usize> = 8..=20;", b.DEEPEST == 20),
    ("crates/tacit-ot/src/silent/dual_lpn/params.rs", "_ => 424,", b.VOLE_TREES == 424),
    ("crates/tacit-ot/src/silent/dual_lpn/params.rs", "2 => 200,", b.SHORT_TREES == 200),
    ("crates/tacit-ot/src/silent/dual_lpn/bcgikrs19.rs", "const SHORT: usize = 1 << 17;", b.SHORT_DEPTH == 11),
    ("crates/tacit-ot/src/silent/ferret/params.rs", "t: 1324,\n        m: 1986,", b.PLACES["main"] == (1324, 1986)),
    ("crates/tacit-ot/src/silent/ferret/params.rs", "t: 1360,\n        m: 2080,", b.PLACES["a"] == (1360, 2080)),
    (
        "crates/tacit-roted/src/set.rs",
        'Set<256, 3> =\n    Set { name: "module-3-256-7681", ring: &RING_256_7681, noise: Noise::Binomial2, key_bits: 256 };',
        (b.MODULUS, b.UNKNOWN, b.RECONCILED) == (7681, 3 * 256, 256),
    ),
    ("crates/tacit-ot/src/silent/ferret/params.rs", "t: 1254,\n        m: 1881,", b.PLACES["setup"] == (1254, 1881)),
]


def of_the_sources():
    for file, text, same in SIZES:
        yield f"{file} has `{' '.join(text.split())}`, as bounds.py says", same and text in (ROOT / file).read_text()


def of_dry_runs(code):
    """What `tacit psi --dry-run` says that a cheating peer can test."""
    ours = b.all_bounds(code)
    if "TACIT" not in os.environ:
        return
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "keys.csv"
        table.write_text("k\n" + "".join(f"key {i}\n" for i in range(1000)))
        for announced in (1, 10, 100, 1000):
            words = ["psi", "--input", table, "--key", "k", "--listen", "127.0.0.1:1", "--insecure-plaintext", "--dry-run"]
            words += ["--result", "peer", "--max-peer-rows", str(announced)]
            said = subprocess.run([os.environ["TACIT"], *words], check=True, capture_output=True, text=True).stdout
            numbers = re.search(r"test more keys than that: (\d+) with 2\^60 hash calls, and (\d+) with 2\^80", said)
            expected = [ours[f"vole.receives.{announced}.{calls}"].value for calls in (60, 80)]
            what = f"--dry-run, {announced} keys of the peer's: {numbers and numbers.groups()}, not {expected}"
            yield what, numbers is not None and [int(number) for number in numbers.groups()] == expected


def of_documents(code):
    ours, tied = b.all_bounds(code), 0
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        text, name = path.read_text(), path.relative_to(ROOT).as_posix()
        for line, what, ok in documents.ties(text, ours):
            tied += 1
            yield f"{name}:{line}: {what}", ok
        if name in PROMISING:
            for line, number in documents.loose(text):
                yield f"{name}:{line}: {number} is tied to no bound", False
    yield f"{tied} numbers of the documents are tied", tied > 50


def of_the_proof(code):
    """The table of section 7 of docs/proofs/authenticated.md: sessions, bits, W, sizes of buckets, the guess at a product."""
    ours, least = b.all_bounds(code), code["constants"]["authenticated"]["least"]
    page = (ROOT / "docs/proofs/authenticated.md").read_text()
    rows = re.findall(r"(?m)^\| (\d+) \| (\d+) \| (\d+) \| (\d from [^|]*) \| 2\^-(\d+)", page)
    for sessions, bits, message, sizes, product in rows:
        name = f"docs/proofs/authenticated.md: {sessions} sessions"
        session = f"session.{sessions}"
        numbers = [ours[f"{session}.bits"].value, ours[f"{session}.message"].value, -ours[f"{session}.product"].value]
        yield f"{name}: {bits}, {message}, 2^-{product}, not {numbers}", [int(bits), int(message), int(product)] == numbers
        for size, start in re.findall(r"(\d) from ([\d,]+)", sizes):
            start = int(start.replace(",", ""))
            expected = ours.get(f"{session}.from.{size}")
            # Six or more begin with the least window that there is.
            holds = start == (max(least, expected.value) if expected else least)
            yield f"{name}: {size} from {start}, not {expected}", holds
    yield "docs/proofs/authenticated.md has its table", len(rows) >= 3


def of_the_check_itself():
    """A wrong number, one that is rounded away, and an unknown name are found."""
    bounds = {"a": b.chance(-40.68), "n": b.Bound(1657), "m": b.Bound(2_540_000)}
    bounds |= {f"r.{i}": b.Bound(1657) for i in (1, 2)}
    right = ["2^-40.7<!-- bound: a -->", "2^-40<!-- bound: a -->", "1,657 / 2.54 million<!-- bound: n, m -->", "2⁻⁴¹<!-- bound: a -->", "2^-40<!-- bound: at most a -->",
             "1,657<!-- bound: n -->", "2.54 million<!-- bound: m -->", "1,657 / 2.54 million<!-- bound: none, no -->", "2^-40.7 and 1657<!-- bound: a, n -->",
             "1657 / 1657<!-- bound: r.{1, 2} -->"]
    wrong = ["2^-40.8<!-- bound: a -->", "2^-39<!-- bound: a -->", "2^-41<!-- bound: at most a -->", "2^-38<!-- bound: at most a -->",
             "1,658<!-- bound: n -->", "2.55 million<!-- bound: m -->", "1,657<!-- bound: o -->", "<!-- bound: n -->", "2^1657<!-- bound: n -->"]
    for texts, holds in ((right, True), (wrong, False)):
        for text in texts:
            yield f"{text}: {'holds' if holds else 'does not'}", all(ok for *_, ok in documents.ties(text, bounds)) == holds
    yield "one behind a factor too", [n for _, n in documents.loose("q·2^-116 and √q·2^-62<!-- bound: a -->")] == ["2^-116"]
    yield "a number without a marker is found", [n for _, n in documents.loose("a\n2^-40, 2^-41<!-- bound: a -->\n2⁻⁴⁰")] == ["2^-40", "2⁻⁴⁰"]


def main():
    code = exported()
    verdicts = [*of_the_check_itself(), *of_the_code(code), *of_the_sources(), *of_dry_runs(code), *of_the_proof(code), *of_documents(code)]
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
