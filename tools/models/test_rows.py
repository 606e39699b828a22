#!/usr/bin/env python3
"""Holds the exact games of rows.py against the bounds. Ends with `N passed, N failed`."""

import sys
from fractions import Fraction
from pathlib import Path

from rows import cases, session, shipped

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402


def flaws():
    """What the model must see: rows would add up if a failed one did not end the session."""
    guess = Fraction(1, 6)
    for rows in (1, 2, 5):
        yield f"{rows} rows of a session that goes on", session(4, 2, rows, True) == 1 - (1 - guess) ** rows
    # A session's value is the guess itself, not less: the cheater that guesses at once has it.
    yield "the best cheater has its guess", session(4, 2, 20) == guess


def main():
    verdicts = [(name, value <= bound) for name, value, bound in cases()]
    verdicts += list(shipped()) + list(flaws())
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
