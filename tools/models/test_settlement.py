#!/usr/bin/env python3
"""Every way in which a plan is settled, and flaws that the model must find. Ends with `N passed, N failed`."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
from settlement import FLAWS, against, honest
from verdicts import told


def main():
    verdicts, total = [], 0
    for name, explored in (("two honest sides", honest()), ("a side against a cheater", against())):
        states, wrong = explored
        total += states
        verdicts.append((f"{name}: {wrong or f'{states} states'}", not wrong))
    for flaw in FLAWS:
        found = honest(flaw)[1] or against(flaw)[1]
        verdicts.append((f"a side that {flaw}: {found or 'nothing is found'}", bool(found)))
    print(f"{total} states")
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
