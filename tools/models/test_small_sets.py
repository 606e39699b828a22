#!/usr/bin/env python3
"""Holds the exact games of small_sets.py against the bounds. Ends with `N passed, N failed`."""

import sys

from small_sets import cases, flaws


def main():
    verdicts = [(name, game <= bound) for name, game, bound in cases()] + list(flaws())
    for name, holds in verdicts:
        if not holds:
            print(f"FAILED {name}")
    passed = sum(holds for _, holds in verdicts)
    print(f"{passed} passed, {len(verdicts) - passed} failed")
    return 0 if passed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
