#!/usr/bin/env python3
"""Every exact model against the bound of its page, its broken variants, and the table in docs/assurance.md.

Ends with `N passed, N failed`.
"""

import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import table  # noqa: E402
from garbling import off  # noqa: E402
from linear import Code, hashed, kernels  # noqa: E402
from verdicts import told  # noqa: E402


def identities():
    """What the models rest on, by other ways to the same."""
    # All maps of two dimensions to two bits, counted, against the kernels' chances.
    counted = {}
    for images in product(range(4), repeat=2):
        kernel = frozenset(v for v in range(4) if (images[0] * (v & 1)) ^ (images[1] * (v >> 1)) == 0)
        counted[kernel] = counted.get(kernel, 0) + Fraction(1, 16)
    yield "kernels of random maps, counted", {kernel: chance for chance, kernel in kernels(2, 2)} == counted
    yield "a vector other than zero hashes to zero with 1/F", all(
        sum(chance for chance, kernel in kernels(3, 5) if hashed(vector, kernel) == 0) == Fraction(1, 32)
        for vector in range(1, 8)
    )
    yield "a code's distance", Code((1, 0, 1, 1), (0, 1, 0, 1)).distance() == 2
    for width in (2, 3):
        yield f"a triple's sums are off as the proof says, {width} bits", all(off(width, seed) for seed in range(4))


def main():
    cases, flaws = list(table.cases()), list(table.flaws())
    verdicts = [
        (f"{check}, {parameters}: {relation} {bound}, exactly {exact}", table.holds(exact, relation, bound))
        for check, _, parameters, relation, bound, exact in cases
    ]
    verdicts += [(f"{variant}: {exact}, no more than {bound}", exact > bound) for variant, _, bound, exact in flaws]
    verdicts += identities()
    page = table.PAGE.read_text()
    for name, made in table.tables(cases, flaws).items():
        begin, end = table.between(name, page)
        what = f"docs/assurance.md: the table of {name} (tools/models/table.py --write)"
        verdicts.append((what, page[begin:end].strip() == made))
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
