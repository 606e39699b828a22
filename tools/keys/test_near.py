#!/usr/bin/env python3
"""Generated people with errors of every kind, matched by types for near matches: two processes of `tacit psi` against the
second implementation of docs/keys.md, which compares each pair of rows by the plain definition, without variants.

    python3 tools/keys/test_near.py [--seed N] [--people N]

The command is `TACIT`, or target/debug/tacit. Each case compares, on both sides, which rows match and which do not, and
all counts. Ends with `N passed, N failed`.
"""

import argparse
import datetime
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from near import combinations, matches_by, values
from test_people import FIRST, LAST, TACIT, read, run_both, write

HEAD = ["n", "last", "first", "born", "house"]
# Options of our side and of theirs, and the types that the second implementation reads them as.
KINDS = {
    "names and dates": (
        ["--key", "last:name~1,first:name~1,born:date~1"],
        ["--key", "last:name~1,first:name~1,born:date:DMY~1"],
        [["name~1", "name~1", "date~1"]],
        [["name~1", "name~1", "date:DMY~1"]],
    ),
    "numbers": (["--key", "house:int~2,last:name"],) * 2 + ([["int~2", "name"]],) * 2,
    "exact, or else near": (
        ["--key", "last:name,first:name,born:date", "--or-key", "last:name~1,born:date~1", "--or-key", "house:int~1,first:name"],
        [
            "--key",
            "last:name,first:name,born:date:DMY",
            "--or-key",
            "last:name~1,born:date:DMY~1",
            "--or-key",
            "house:int~1,first:name",
        ],
        [["name", "name", "date"], ["name~1", "date~1"], ["int~1", "name"]],
        [["name", "name", "date:DMY"], ["name~1", "date:DMY~1"], ["int~1", "name"]],
    ),
}


def mistyped(rng, text):
    """One letter lost, put in, exchanged with its neighbour, replaced, or moved; sometimes two errors."""
    at, letter = rng.randrange(len(text)), rng.choice("aeinrst o")
    kinds = [
        text[:at] + text[at + 1 :],
        text[:at] + letter + text[at:],
        text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :],
        text[:at] + letter + text[at + 1 :],
        text[:at] + text[at + 1 :] + text[at],
    ]
    error = rng.choice(kinds) or letter
    return mistyped(rng, error) if rng.random() < 0.2 else error


def misdated(rng, day):
    """Day and month exchanged, one digit wrong, one day or ten years off, or another day."""
    changes = [
        lambda: day.replace(month=day.day, day=day.month),
        lambda: day.replace(year=day.year + rng.choice([1, 10, -1])),
        lambda: day + datetime.timedelta(days=rng.choice([-1, 1, 10])),
        lambda: day.replace(month=rng.randint(1, 12)),
        lambda: datetime.date(rng.randint(1940, 2005), rng.randint(1, 12), rng.randint(1, 28)),
    ]
    try:
        return rng.choice(changes)()
    except ValueError:
        return day


def rows_of(rng, people, count, is_dmy):
    rows = []
    for number in range(count):
        last, first, born, house = rng.choice(people)
        if rng.random() < 0.3:
            last = mistyped(rng, last)
        if rng.random() < 0.2:
            first = mistyped(rng, first)
        if rng.random() < 0.3:
            born = misdated(rng, born)
        if rng.random() < 0.3:
            house += rng.choice([-3, -2, -1, 1, 2, 3])
        if rng.random() < 0.05:
            last = rng.choice(["", " ", "-", "X" * 70, "Li", "X"])
        written = f"{born.day}.{born.month}.{born.year}" if is_dmy else born.isoformat()
        if rng.random() < 0.05:
            written = rng.choice(["", "31.2.1999", "?", "1.1.75"])
        rows.append([str(number), rng.choice([last, last.upper()]), first, written, str(house)])
    return rows


def counted(types, own, other):
    """Of each identifier: rows that have it, distinct variants, and those in common."""
    each = []
    for at, columns in enumerate(types[0]):
        made = [{c for row in own if row[at] is not None for c in combinations(columns, row[at])}]
        made += [{c for row in other if row[at] is not None for c in combinations(types[1][at], row[at])}]
        each.append((sum(row[at] is not None for row in own), len(made[0]), len(made[1]), len(made[0] & made[1])))
    return each


def case(rng, kind, people, sizes, folder):
    options, types = KINDS[kind][:2], KINDS[kind][2:]
    drawn = [
        (rng.choice(LAST), rng.choice(FIRST), datetime.date(rng.randint(1930, 2010), rng.randint(1, 12), rng.randint(1, 28)),
         rng.choice([1, 7, 10, 99, 100, -2, 10**30]) + rng.randrange(9))
        for _ in range(people)
    ]
    rows = [rows_of(rng, drawn, sizes[0], False), rows_of(rng, drawn, sizes[1], True)]
    columns = [HEAD.index(part.split(":")[0]) for word in options[0][1::2] for part in word.split(",")]
    forms = [[values(types[at], [row[c] for c in columns]) for row in rows[at]] for at in (0, 1)]
    words = []
    for at in (0, 1):
        write(folder / f"{at}.csv", HEAD, rows[at])
        outputs = ["--output", f"out{at}.csv", "--output-rest", f"rest{at}.csv"]
        words.append(["--input", f"{at}.csv", *options[at], *outputs, "--result", "both"])
    said = run_both(folder, *words)
    found = 0
    for at in (0, 1):
        by = matches_by(types[at], forms[at], forms[1 - at])
        expected = [row for row, first in zip(rows[at], by, strict=True) if first is not None]
        assert read(folder / f"out{at}.csv") == (HEAD, expected), f"{kind}: rows of side {at}"
        rest = [row for row, first in zip(rows[at], by, strict=True) if first is None]
        assert read(folder / f"rest{at}.csv") == (HEAD, rest), f"{kind}: the rest of side {at}"
        each = counted((types[at], types[1 - at]), forms[at], forms[1 - at])
        totals = [sum(one[field] for one in each) for field in (1, 2, 3)]
        assert [said[at][name] for name in ("own_keys", "peer_keys", "matches")] == totals, (kind, said[at], totals)
        for place, (of, one) in enumerate(zip(said[at]["identifiers"], each, strict=True)):
            got = (of["rows"], of["distinct"], of["matches"], of["rows_matched_by"])
            assert got == (one[0], one[1], one[3], by.count(place)), (kind, of, one)
        assert said[at]["matching_rows"] == len(expected) and said[at]["variants"] is True
        assert said[at]["rows_without_key"] == sum(all(f is None for f in row) for row in forms[at])
        assert f"{totals[0]} distinct variant" in said[at]["other_side_learned"], said[at]["other_side_learned"]
        found += len(expected)
    return found


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    words.add_argument("--people", type=int, default=120)
    options = words.parse_args()
    if not Path(TACIT).exists():
        print(f"{TACIT} is missing: `cargo build -p tacit-cli` makes it\n0 passed, 1 failed")
        return 1
    print(f"seed {options.seed}")
    people = options.people
    tests = [(kind, people, sizes) for kind in KINDS for sizes in ((people, 2 * people), (5, 1))]
    failed, found = 0, 0
    for number, (kind, among, sizes) in enumerate(tests):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found += case(random.Random(f"{options.seed} {number}"), kind, among, sizes, Path(folder))
            except (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
                failed += 1
                print(f"FAILED {kind} {sizes}: {error}")
    print(f"{found} rows matched on both sides together")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
