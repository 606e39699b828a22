"""Rows with any of several identifiers, as docs/keys.md defines them: the second implementation.

    python3 tools/keys/identifiers.py

prints the part `identifiers` of docs/keys-vectors.json, made from the tables below.
"""

import json
import struct
import sys
from pathlib import Path

from keys import Refused, normalise

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))


def values(types, cells):
    """The normal forms of each identifier of a row, a tuple each; None where the row does not have it.

    `types` has a list of types for each identifier, `cells` the row's cells in the same order, all in one list.
    """
    cells, found = iter(cells), []
    for columns in types:
        own = [(kind, next(cells)) for kind in columns]
        try:
            found.append(tuple(normalise(kind, cell) for kind, cell in own))
        except Refused:
            found.append(None)
    return found


def element(place, forms):
    """What is compared: a hash of the identifier's place, from 1, and of the normal forms, each behind its length."""
    from blake3 import Blake3, keyed

    key = Blake3.derive_key("tacit 2026 record key of several identifiers v1").digest()
    parts = b"".join(struct.pack("<Q", len(form.encode())) + form.encode() for form in forms)
    return keyed(key, struct.pack("<Q", place) + parts)


def matches_by(own, other):
    """For each row of `own` the first identifier, from 0, that some row of `other` has too; None without one.

    Both are lists of what `values` gives: nothing is compared across identifiers.
    """
    known = [{row[at] for row in other} - {None} for at in range(len(own[0]))] if own else []
    firsts = ([at for at, forms in enumerate(row) if forms is not None and forms in known[at]] for row in own)
    return [found[0] if found else None for found in firsts]


def told(types, rows, other):
    """A side of a vector: its types, and for each row cells, elements and by which identifier it matches."""
    own = [values(types, row) for row in rows]
    by = matches_by(own, other)
    each = (
        {
            "cells": row,
            "elements": [None if f is None else element(at + 1, f).hex() for at, f in enumerate(forms)],
            "matches_by": first,
        }
        for row, forms, first in zip(rows, own, by, strict=True)
    )
    return {"types": types, "rows": list(each)}


PERSON = [["email"], ["phone:NL"], ["name", "name", "date:DMY"]]
ABROAD = [["email"], ["phone"], ["name", "name", "date"]]

TABLES = [
    # Each kind of match, a row with none, and equal identifiers in several rows.
    (
        PERSON,
        [
            ["Ann@example.org", "06 12345678", "Müller", "Ann", "29.2.1980"],
            ["", "0612345679", "Rossi", "Bo", "1.7.1975"],
            ["cleo@example.org", "", "Sørensen", "Cléo", "11.11.1990"],
            ["", "", "", "", ""],
            ["ann@example.org", "0612345680", "Ito", "Dan", "1.1.2001"],
            ["no address", "12", "Only", "Name", "30.2.1999"],
        ],
        ABROAD,
        [
            ["ANN@EXAMPLE.ORG", "", "x", "y", "1980-01-01"],
            ["zed@example.org", "+31 6 12345679", "Rossi", "Bo", "1975-07-01"],
            ["other@example.org", "+31 6 00000000", "SORENSEN", "Cleo", "1990-11-11"],
            ["", "+31612345678", "q", "", ""],
        ],
    ),
    # An identifier's place counts: the same text in another one is another element.
    ([["text"], ["text"]], [["a", "b"], ["c", ""]], [["text"], ["text"]], [["b", "a"], ["", "c"], ["x", "b"]]),
    # A part that is refused takes its identifier, and no other.
    ([["int", "int"], ["uuid"]], [["1", "x", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"], ["1", "2", "?"]],
     [["int", "int"], ["uuid"]], [["1", "", "{6BA7B810-9DAD-11D1-80B4-00C04FD430C8}"], ["01", "+2", ""]]),
    # Lengths keep columns apart; a hashed list beside clear values; long values.
    ([["text", "text"], ["email:sha256"]], [["ab", "c", "Ann@example.org"], ["x" * 80, "y", ""]],
     [["text", "text"], ["sha256-hex:email"]],
     [["a", "bc", "438c4c7afe600cdf1e455c369bec76dc970fc8ca463447c7b387a347f3c79331"], ["X" * 80, "Y", "clear"]]),
    # No rows on one side.
    ([["int"], ["int"]], [["1", "2"]], [["int"], ["int"]], []),
]


def vectors():
    """The part of the published file."""
    every = []
    for types, rows, their_types, their_rows in TABLES:
        own, other = [values(types, row) for row in rows], [values(their_types, row) for row in their_rows]
        every.append({"ours": told(types, rows, other), "theirs": told(their_types, their_rows, own)})
    return every


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
