#!/usr/bin/env python3
"""Holds the least weights that docs/proofs/wmk17.md lists against the matrices. Ends with `N passed, N failed`."""

import re
import sys
from itertools import combinations
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import weights  # noqa: E402
from verdicts import told  # noqa: E402

PAGE = HERE.parent.parent / "docs" / "proofs" / "wmk17.md"
# Larger inputs take long in Python.
MOST = 16


def by_hand(k):
    """The least weight by all sets of rows."""
    least = 1 << 30
    for size in range(1, k + 1):
        for some in combinations(weights.rows(k), size):
            total = 0
            for row in some:
                total ^= row
            least = min(least, total.bit_count())
    return least


def verdicts():
    listed = re.search(r"\((1\s+bit:\s+\d+(?:,\s+\d+:\s+\d+)+)\)", PAGE.read_text())
    yield "docs/proofs/wmk17.md lists least weights", listed is not None
    of_page = {int(k): int(weight) for k, weight in re.findall(r"(\d+)(?:\s+bit)?:\s+(\d+)", listed[1] if listed else "")}
    for k in range(1, MOST + 1):
        weight = weights.least_weight(k)
        yield f"{k} bits: {weight}, 68 or more", weight >= 68
        if k in of_page:
            yield f"{k} bits: {weight}, not {of_page[k]} as the page has it", weight == of_page[k]
    for k in (1, 2, 5, 8):
        yield f"{k} bits, by all sets of rows", weights.least_weight(k) == by_hand(k)


def main():
    return told(verdicts())


if __name__ == "__main__":
    sys.exit(main())
