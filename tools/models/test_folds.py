#!/usr/bin/env python3
"""Holds folds of rows on shares against what they may tell (folds.py). Ends with `N passed, N failed`."""

import sys
from pathlib import Path

from folds import BROKEN, CASES, REUSED, differs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402


def main():
    verdicts = []
    for size, kind, least in CASES:
        found = differs(size, kind, least)
        verdicts.append((f"{kind} of {size} rows, {least} matches at least{found and ': ' + found}", not found))
    for name, case in BROKEN:
        verdicts.append((f"the model sees that {name}", bool(differs(*case))))
    for case in REUSED:
        verdicts.append((f"the model sees a triple that serves twice: {case}", bool(differs(*case))))
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
