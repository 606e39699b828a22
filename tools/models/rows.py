#!/usr/bin/env python3
"""The exact model of how often a cheating garbler breaks cut-and-choose with input recovery.

n copies, k of which the evaluator evaluates, a set that is drawn anew for each row. In a row the garbler
settles which copies are bad, without knowing the set. It may make that depend on an encoded bit of the
evaluator's input (a spoilt label counts for one value alone), which it does not know either: a strategy for
a row is a set of bad copies for each value of the bit, and every such strategy is tried.

- A bad copy is checked: the row fails, and the session with it.
- All evaluated copies are bad, and no other one: the garbler has won.
- Else the output is right, and the next row follows. Afterwards the garbler is told nothing that would help:
  set and bit of the next row are new.

A job has `sessions` side by side, each of which is played to its end whatever becomes of the others. The
page's bound is 1 / C(n, k) for a session, however many rows, and so many times that for a job's sessions.
`goes_on` is the game in which a failed row would not end the session: there rows add up.

    tools/models/rows.py
"""

import sys
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import comb


def strategies(copies):
    """Every way to settle a row: the bad copies for each value of the bit."""
    subsets = [frozenset(some) for size in range(copies + 1) for some in combinations(range(copies), size)]
    return product(subsets, repeat=2)


def row(copies, evaluated, strategy):
    """The chances that a row is won, and that it goes on."""
    sets = [frozenset(some) for some in combinations(range(copies), evaluated)]
    cases = [(bad, chosen) for bad in strategy for chosen in sets]
    won = sum(bad == chosen for bad, chosen in cases)
    on = sum(bad < chosen for bad, chosen in cases)
    return Fraction(won, len(cases)), Fraction(on, len(cases))


@lru_cache(maxsize=None)
def chances(copies, evaluated):
    """What every strategy comes to, each pair of chances once."""
    return frozenset(row(copies, evaluated, strategy) for strategy in strategies(copies))


@lru_cache(maxsize=None)
def session(copies, evaluated, rows, goes_on=False):
    """The value of a session of so many rows."""
    if rows == 0:
        return Fraction(0)
    later = session(copies, evaluated, rows - 1, goes_on)
    return max(won + (1 - won if goes_on else on) * later for won, on in chances(copies, evaluated))


def job(copies, evaluated, rows, sessions):
    """The value of a job, whose sessions do not hear of each other."""
    return 1 - (1 - session(copies, evaluated, rows)) ** sessions


def cases():
    """(name, value, bound) of every game."""
    for copies, evaluated in [(2, 1), (3, 1), (4, 1), (4, 2), (5, 2)]:
        guess = Fraction(1, comb(copies, evaluated))
        for rows in (1, 2, 5, 20):
            name = f"{evaluated} of {copies} copies, {rows} rows"
            yield name, session(copies, evaluated, rows), guess
            for sessions in (2, 4):
                yield f"{name}, {sessions} sessions", job(copies, evaluated, rows, sessions), sessions * guess


def shipped():
    """Whether what ships keeps 2^-40 for a job, and a copy less does not: copies, of them evaluated, sessions."""
    table = {
        1: [(44, 24), (44, 22), (47, 16)],
        2: [(45, 24), (45, 22), (48, 16)],
        4: [(46, 24), (46, 22), (50, 16)],
        16: [(48, 24), (48, 22), (54, 16)],
    }
    for sessions, kinds in table.items():
        for copies, evaluated in kinds:
            enough = comb(copies, evaluated) >= sessions << 40
            yield f"{evaluated} of {copies} copies, {sessions} sessions", enough
            if sessions > 1:
                fewer = comb(copies - 1, evaluated) < sessions << 40
                yield f"{evaluated} of {copies} copies are the fewest for {sessions} sessions", fewer


def main():
    """Prints each game's value beside its bound."""
    worse = 0
    for name, value, bound in cases():
        worse += value > bound
        print(f"{name}: {value} of {bound}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
