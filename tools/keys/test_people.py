#!/usr/bin/env python3
"""Generated people with errors of every kind, matched by any of several identifiers: two processes of `tacit psi`
against the second implementation of docs/keys.md, which joins the clear tables.

    python3 tools/keys/test_people.py [--seed N] [--people N]

The command is `TACIT`, or target/debug/tacit. Each case compares, on both sides, which rows match, by which identifier,
which do not, the peer's columns where they are sent, and all counts. Ends with `N passed, N failed`.
"""

import argparse
import csv
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from identifiers import matches_by, values

ROOT = Path(__file__).resolve().parents[2]
TACIT = os.environ.get("TACIT", str(ROOT / "target" / "debug" / "tacit"))
SECONDS = 240

FIRST = ["Ann", "Bo", "Cléo", "Dan", "Eve", "François", "Gül", "Håkon", "Inês", "Jürgen", "Łucja", "Zoë", "Li Wei"]
LAST = ["Müller", "Rossi", "Sørensen", "O’Neil", "van den Berg", "Şahin", "Ito", "García-López", "Đorđević", "Smith"]
# The columns of both sides, their options, and the types that the second implementation reads them as.
OURS = (
    ["n", "mail", "tel", "family", "given", "born"],
    ["--key", "mail:email", "--or-key", "tel:phone:NL", "--or-key", "family:name,given:name,born:date"],
    [["email"], ["phone:NL"], ["name", "name", "date"]],
)
THEIRS = (
    ["adresse", "fon", "nachname", "vorname", "geboren", "ort"],
    ["--key", "adresse:email", "--or-key", "fon:phone:NL", "--or-key", "nachname:name,vorname:name,geboren:date:DMY"],
    [["email"], ["phone:NL"], ["name", "name", "date:DMY"]],
)


def person(rng, number):
    first, last = rng.choice(FIRST), rng.choice(LAST)
    born = (rng.randint(1930, 2010), rng.randint(1, 12), rng.randint(1, 28))
    return {"mail": f"user{number}@example.org", "tel": f"6{10_000_000 + number}", "first": first, "last": last, "born": born}


def typo(rng, text):
    """One letter lost, doubled, exchanged with its neighbour, or another."""
    if len(text) < 2:
        return text + "x"
    at = rng.randrange(len(text) - 1)
    kinds = [
        text[:at] + text[at + 1 :],
        text[:at] + text[at] + text[at:],
        text[:at] + text[at + 1] + text[at] + text[at + 2 :],
        text[:at] + rng.choice("aeinrst7") + text[at + 1 :],
    ]
    return rng.choice(kinds)


def spelt(rng, one, is_dmy):
    """The person as somebody wrote it: other spellings of the same, errors, and nothing."""
    mail = rng.choice([one["mail"], one["mail"].upper(), f" {one['mail']}", one["mail"].replace("@", "@\u200b")])
    tel = rng.choice(["0", "+31", "0031 ", "+31 (0)", "tel:+31-"]) + one["tel"]
    year, month, day = one["born"]
    iso = f"{year:04}-{month:02}-{day:02}"
    born = rng.choice([iso, f"{day}.{month}.{year}", f"{day:02}/{month:02}/{year}"]) if is_dmy else iso
    first, last = rng.choice([one["first"], one["first"].upper()]), rng.choice([one["last"], one["last"].lower()])
    cells = {"mail": mail, "tel": tel, "last": last, "first": first, "born": born}
    for name in cells:
        what = rng.random()
        if what < 0.18:
            cells[name] = rng.choice(["", "", " "])
        elif what < 0.24:
            cells[name] = typo(rng, cells[name])
        elif what < 0.27:
            cells[name] = rng.choice(["n/a", "call me", "?", "31.2.1999", "a@b@c", "0", "\u00ad"])
    if rng.random() < 0.05:
        cells["last"], cells["first"] = cells["first"], cells["last"]
    if rng.random() < 0.04:
        cells["mail"], cells["tel"] = cells["tel"], cells["mail"]
    return cells


def side(rng, people, count, is_dmy):
    """Rows of a side: people drawn with repetition, households with one number, and shared addresses."""
    rows = []
    for _ in range(count):
        one = dict(rng.choice(people))
        if rng.random() < 0.1:
            one["tel"] = f"2012345{rng.randrange(100):02}"
        if rng.random() < 0.05:
            one["mail"] = f"info{rng.randrange(20)}@example.org"
        rows.append(spelt(rng, one, is_dmy))
    return rows


def ours_of(rows):
    return [[str(n), r["mail"], r["tel"], r["last"], r["first"], r["born"]] for n, r in enumerate(rows)]


def theirs_of(rows):
    return [[r["mail"], r["tel"], r["last"], r["first"], r["born"], f"Ort {n}"] for n, r in enumerate(rows)]


def write(path, head, rows):
    """A table as the path's end says."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *rows])
    elif path.suffix == ".jsonl":
        lines = (json.dumps(dict(zip(head, row, strict=True))) for row in rows)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    else:
        raise AssertionError(path)


def read(path):
    """A table that the command wrote: head and rows."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head, rows


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def run_both(folder, ours, theirs):
    """Both sides' results, as JSON has them."""
    address = f"127.0.0.1:{free_port()}"

    def one(words):
        command = [TACIT, "--json", "psi", "--insecure-plaintext", *words]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert said.returncode == 0, f"{command}: {said.stderr}"
        return json.loads(said.stdout.splitlines()[0])

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, [["--listen", address, *ours], ["--connect", address, *theirs]]))


def names_of(head_and_options):
    """What each identifier is called."""
    words = head_and_options[1][1::2]
    return ["+".join(column.split(":")[0] for column in word.split(",")) for word in words]


def counted(own, other):
    """What the command counts of each identifier: rows that have it, distinct values, common ones, rows by it."""
    by = matches_by(own, other)
    each = []
    for at in range(len(own[0])):
        mine, their = [row[at] for row in own if row[at] is not None], {row[at] for row in other}
        each.append((len(mine), len(set(mine)), len(set(mine) & their), by.count(at)))
    return each


class Case:
    """Two tables, and what must come of them."""

    def __init__(self, rng, people, sizes, ends):
        drawn = [person(rng, number) for number in range(people)]
        self.rows = [ours_of(side(rng, drawn, sizes[0], False)), theirs_of(side(rng, drawn, sizes[1], True))]
        self.files = [f"a{ends[0]}", f"b{ends[1]}"]
        # Our rows begin with their number, theirs end with a place that is not a key.
        self.values = [
            [values(OURS[2], row[1:]) for row in self.rows[0]],
            [values(THEIRS[2], row[:5]) for row in self.rows[1]],
        ]

    def place(self, folder):
        for file, (head, *_), rows in zip(self.files, (OURS, THEIRS), self.rows, strict=True):
            write(folder / file, head, rows)

    def check_counts(self, at, said, has_distinct):
        own, other = self.values[at], self.values[1 - at]
        names = names_of((OURS, THEIRS)[at])
        each = counted(own, other)
        for name, of, (rows, distinct, common, by) in zip(names, said["identifiers"], each, strict=True):
            assert (of["identifier"], of["rows"], of["rows_matched_by"]) == (name, rows, by), (of, name, rows, by)
            if has_distinct:
                assert (of["distinct"], of["matches"]) == (distinct, common), (of, distinct, common)
        total = sum(distinct for _, distinct, _, _ in each)
        shared = sum(common for _, _, common, _ in each)
        theirs = sum(len({row[i] for row in other} - {None}) for i in range(len(other[0])))
        assert (said["own_keys"], said["peer_keys"], said["matches"]) == (total, theirs, shared), said
        assert said["union_keys"] == total + theirs - shared
        assert said["matching_rows"] == sum(by for *_, by in each)
        assert said["rows_without_key"] == sum(all(v is None for v in row) for row in own)
        assert said["duplicates"] == sum(rows for rows, *_ in each) - total

    def check_rows(self, at, folder, files):
        head, rows = (OURS, THEIRS)[at][0], self.rows[at]
        by = [None if i is None else names_of((OURS, THEIRS)[at])[i] for i in matches_by(self.values[at], self.values[1 - at])]
        output, rest, every = (read(folder / file) for file in files)
        assert output == ([*head, "by"], [[*row, name] for row, name in zip(rows, by, strict=True) if name]), files[0]
        assert rest == (head, [row for row, name in zip(rows, by, strict=True) if not name]), files[1]
        marked = [[*row, "true" if name else "false", name or ""] for row, name in zip(rows, by, strict=True)]
        assert every == ([*head, "matched", "by"], marked), files[2]


def outputs(at):
    files = [f"{kind}{at}.csv" for kind in ("out", "rest", "all")]
    options = ["--output", files[0], "--output-rest", files[1], "--output-all", files[2], "--matched-by", "by"]
    return files, options


def both_get_rows(case, folder, more=(), has_distinct=True):
    case.place(folder)
    sides = [outputs(0), outputs(1)]
    words = [
        ["--input", file, *options, *to, "--result", "both", *more]
        for file, (_, options, _), (_, to) in zip(case.files, (OURS, THEIRS), sides, strict=True)
    ]
    said = run_both(folder, *words)
    for at in (0, 1):
        case.check_counts(at, said[at], has_distinct)
        case.check_rows(at, folder, sides[at][0])


def in_buckets(case, folder):
    memory = ["--memory", "1GiB", "--buckets", "8"]
    both_get_rows(case, folder, memory, has_distinct=False)


def with_columns(case, folder):
    """Our rows with a column of theirs, of all of their rows that have the identifier by which ours matches."""
    case.place(folder)
    ours = ["--input", case.files[0], *OURS[1], "--reveal", "payload:ort", "--output", "out.csv", "--matched-by", "by"]
    theirs = ["--input", case.files[1], *THEIRS[1], "--reveal", "payload", "--give", "ort", "--result", "peer"]
    said = run_both(folder, ours, [*theirs, "--duplicates", "all"])
    case.check_counts(0, said[0], True)
    head, rows = read(folder / "out.csv")
    names, expected = names_of(OURS), []
    for row, forms, by in zip(case.rows[0], case.values[0], matches_by(*case.values), strict=True):
        if by is None:
            continue
        for their_row, their_forms in zip(case.rows[1], case.values[1], strict=True):
            if their_forms[by] == forms[by]:
                expected.append([*row, names[by], their_row[5]])
    assert head == [*OURS[0], "by", "ort"] and rows == expected


def one_gets_rows(case, folder):
    case.place(folder)
    files, to = outputs(1)
    ours = ["--input", case.files[0], *OURS[1], "--result", "peer"]
    said = run_both(folder, ours, ["--input", case.files[1], *THEIRS[1], *to, "--result", "me", "--threads", "1"])
    case.check_counts(1, said[1], True)
    case.check_rows(1, folder, files)
    assert "matching_rows" not in said[0]


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    words.add_argument("--people", type=int, default=300)
    options = words.parse_args()
    if not Path(TACIT).exists():
        print(f"{TACIT} is missing: `cargo build -p tacit-cli` makes it\n0 passed, 1 failed")
        return 1
    print(f"seed {options.seed}")
    people = options.people
    tests = [
        (both_get_rows, people, (people, people), (".csv", ".csv")),
        (both_get_rows, 3, (7, 2), (".csv", ".csv")),
        (one_gets_rows, people, (people // 3, 2 * people), (".jsonl", ".csv")),
        (with_columns, people // 2, (people, people), (".csv", ".jsonl")),
        (in_buckets, people, (2 * people, people), (".csv", ".csv")),
        (both_get_rows, 30, (4 * people, 5 * people), (".csv", ".csv")),
    ]
    failed = 0
    for number, (test, among, sizes, ends) in enumerate(tests):
        case = Case(random.Random(f"{options.seed} {number}"), among, sizes, ends)
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(case, Path(folder))
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"FAILED {test.__name__} {sizes}: {error}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
