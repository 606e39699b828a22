#!/usr/bin/env python3
"""Every interleaving of a lobby's threads, and flaws that the model must find. Ends with `N passed, N failed`."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
from lobby import CASES, FLAWS, explore  # noqa: E402
from verdicts import told  # noqa: E402


def main():
    verdicts, total = [], 0
    for kinds in CASES:
        states, wrong = explore(kinds)
        total += states
        verdicts.append((f"{', '.join(kinds)}: {wrong or f'{states} states'}", not wrong))
    for flaw in FLAWS:
        found = next((wrong for kinds in CASES if (wrong := explore(kinds, flaw)[1])), "")
        verdicts.append((f"a lobby that {flaw}: {found or 'nothing is found'}", bool(found)))
    print(f"{total} states")
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
