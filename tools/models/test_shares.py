#!/usr/bin/env python3
"""Holds the views of shares.py against each other. Ends with `N passed, N failed`."""

import sys
from pathlib import Path

from shares import CIRCUITS, leaks

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402

LEARNS = {"the garbler": (0,), "the evaluator": (1,), "both": (0, 1)}


def views():
    for name, circuit in CIRCUITS.items():
        for who, learns in LEARNS.items():
            apart, pairs = leaks(*circuit, learns)
            yield f"{name}, outputs to {who}: inputs told apart by a view", apart == 0 and pairs > 5


def flaws():
    """What the model must see: a triple that two gates use tells their inputs apart."""
    yield "a triple for two gates", leaks(*CIRCUITS["a chain"], (0,), reuse=True)[0] > 0


def main():
    return told(list(views()) + list(flaws()))


if __name__ == "__main__":
    sys.exit(main())
