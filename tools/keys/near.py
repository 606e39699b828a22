"""Near matches, as docs/keys.md defines them: the second implementation.

    python3 tools/keys/near.py

prints the part `near` of docs/keys-vectors.json, made from the values and tables below.

`variants` has what the page has, and `are_near` which pairs match, said without variants.
"""

import itertools
import json
import struct
import sys
from pathlib import Path

from keys import Refused, normalise

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))

MOST = 4096


def parts_of(kind):
    """The type that normalises, and how far its values may be apart: 0 where they must be equal."""
    base, tilde, by = kind.rpartition("~")
    return (base, int(by)) if tilde else (kind, 0)


def normal(kind, value):
    base, by = parts_of(kind)
    form = normalise(base, value)
    if by and base == "name" and len(form) > 64:
        raise Refused("length")
    return form


def variants(kind, form):
    """The variants of a normal form, in order."""
    base, by = parts_of(kind)
    if not by:
        return [form]
    if base == "int":
        return [str(int(form) + more) for more in range(by + 1)]
    if base == "name":
        lost = [form[:at] + form[at + 1 :] for at in range(len(form))] if len(form) >= 3 else []
        return list(dict.fromkeys([form, *lost]))
    masked = [form[:at] + "_" + form[at + 1 :] for at in range(10) if form[at] != "-"]
    year, month, day = form.split("-")
    if int(day) <= 12 and month != day:
        masked.append("/".join([year, *sorted([month, day])]))
    return masked


def common(one, other):
    """The length of the longest common subsequence."""
    best = [0] * (len(other) + 1)
    for a in one:
        corner = 0
        for at, b in enumerate(other):
            corner, best[at + 1] = best[at + 1], corner + 1 if a == b else max(best[at + 1], best[at])
    return best[-1]


def are_near(kind, one, other):
    """Whether two normal forms match."""
    base, by = parts_of(kind)
    if one == other:
        return True
    if not by:
        return False
    if base == "int":
        return abs(int(one) - int(other)) <= by
    if base == "name":
        longer = max(len(one), len(other))
        return longer >= 3 and common(one, other) >= longer - 1
    different = sum(a != b for a, b in zip(one, other, strict=True))
    return different == 1 or one[:4] == other[:4] and one[5:7] == other[8:] and one[8:] == other[5:7]


def values(types, cells):
    """The normal forms of each identifier of a row, a tuple each; None where the row does not have it."""
    cells, found = iter(cells), []
    for columns in types:
        own = [(kind, next(cells)) for kind in columns]
        try:
            forms = tuple(normal(kind, cell) for kind, cell in own)
        except Refused:
            found.append(None)
            continue
        combined = 1
        for kind, form in zip(columns, forms, strict=True):
            combined *= len(variants(kind, form))
        found.append(forms if combined <= MOST else None)
    return found


def identifier_matches(columns, one, other):
    return all(are_near(kind, a, b) for kind, a, b in zip(columns, one, other, strict=True))


def matches_by(types, own, other):
    """For each row of `own` the first identifier, from 0, by which some row of `other` is near; None without one."""

    def first(row):
        for at, columns in enumerate(types):
            there = [theirs[at] for theirs in other if theirs[at] is not None]
            if row[at] is not None and any(identifier_matches(columns, row[at], forms) for forms in there):
                return at
        return None

    return [first(row) for row in own]


def combinations(columns, forms):
    """The variants of an identifier: of all combinations of its parts' variants, the last of which changes first."""
    return list(itertools.product(*(variants(kind, form) for kind, form in zip(columns, forms, strict=True))))


def element(place, has_several, forms):
    """What is compared: a hash of the combination, with the identifier's place if there are several."""
    from blake3 import Blake3, keyed

    context = "tacit 2026 record key of several identifiers v1" if has_several else "tacit 2026 record key v1"
    parts = b"".join(struct.pack("<Q", len(form.encode())) + form.encode() for form in forms)
    return keyed(Blake3.derive_key(context).digest(), (struct.pack("<Q", place) if has_several else b"") + parts)


def told(types, rows, other):
    own = [values(types, row) for row in rows]
    by = matches_by(types, own, other)

    def elements(at, forms):
        if forms is None:
            return []
        return [element(at + 1, len(types) > 1, one).hex() for one in combinations(types[at], forms)]

    each = (
        {"cells": row, "elements": [elements(at, f) for at, f in enumerate(forms)], "matches_by": first}
        for row, forms, first in zip(rows, own, by, strict=True)
    )
    return {"types": types, "rows": list(each)}


VALUES = [
    ("name~1", "Meyer"),
    ("name~1", "Anna-Maria"),
    ("name~1", "O’Neil"),
    ("name~1", "Li"),
    ("name~1", "A"),
    ("name~1", "Ann"),
    ("name~1", "aaab"),
    ("name~1", "Łucja"),
    ("name~1", "王小明"),
    ("name~1", " - "),
    ("name~1", "x" * 64),
    ("name~1", "x" * 65),
    ("date~1", "1975-03-12"),
    ("date~1", "1975-03-13"),
    ("date~1", "2000-12-12"),
    ("date:DMY~1", "3.12.1975"),
    ("date:MDY~1", "12/3/1975"),
    ("date~1", "3.12.1975"),
    ("date~1", "1975-02-30"),
    ("int~1", "0041"),
    ("int~3", "-2"),
    ("int~2", "-1000"),
    ("int~9", "99999999999999999999999999999995"),
    ("int~9", "-100000000000000000000000000000001"),
    ("int~1", "1.5"),
]

TABLES = [
    # Names and dates that differ in each way that matches, and in each that is near it.
    (
        [["name~1", "date~1"]],
        [
            ["Meyer", "1975-03-12"],
            ["Schmidt", "1980-01-31"],
            ["Li", "1990-05-05"],
            ["Brown", "1961-07-02"],
            ["", "1961-07-02"],
        ],
        [["name~1", "date:DMY~1"]],
        [["Meier", "3.12.1975"], ["Schimdt", "31.1.1990"], ["Le", "5.5.1990"], ["Brwon", "3.8.1961"]],
    ),
    # Beside an exact identifier, and one that is refused.
    (
        [["email"], ["int~2", "name"]],
        [["ann@example.org", "17", "Ann"], ["", "20", "Bo"], ["bo@example.org", "x", "Bo"]],
        [["email"], ["int~2", "name"]],
        [["bo@example.org", "22", "BO"], ["", "14", "Ann"], ["", "19", "Ann"]],
    ),
    # More combinations than a row may have: 65 by 65.
    (
        [["name~1", "name~1"]],
        [["".join(map(chr, range(0x4E00, 0x4E40)))] * 2, ["abc", "Li"]],
        [["name~1", "name~1"]],
        [["".join(map(chr, range(0x4E00, 0x4E40)))] * 2, ["acb", "Li"]],
    ),
]


def vectors():
    """The part of the published file."""
    forms = []
    for kind, value in VALUES:
        try:
            forms.append({"type": kind, "value": value, "variants": variants(kind, normal(kind, value))})
        except Refused as refused:
            forms.append({"type": kind, "value": value, "refused": str(refused)})
    every = []
    for types, rows, their_types, their_rows in TABLES:
        own, other = [values(types, row) for row in rows], [values(their_types, row) for row in their_rows]
        every.append({"ours": told(types, rows, other), "theirs": told(their_types, their_rows, own)})
    return {"values": forms, "tables": every}


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
