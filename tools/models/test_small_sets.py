#!/usr/bin/env python3
"""Holds the exact games of small_sets.py against the bounds. Ends with `N passed, N failed`."""

import sys
from pathlib import Path

from small_sets import cases, flaws

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402


def main():
    verdicts = [(name, game <= bound) for name, game, bound in cases()] + list(flaws())
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
