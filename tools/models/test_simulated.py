#!/usr/bin/env python3
"""Holds runs against the simulators of simulated.py. Ends with `N passed, N failed`."""

import sys
from pathlib import Path

from simulated import CIRCUITS, evaluator_tells, garbler_differs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402


def gates(circuit):
    return sum(gate[0] == "&" for gate in circuit[2])


def views():
    for name, circuit in CIRCUITS.items():
        drawn = range(120 if gates(circuit) < 2 else 16)
        for stretches in (False, True)[: gates(circuit)] or (False,):
            differ = sum(garbler_differs(circuit, seed, stretches) for seed in drawn)
            how = "a stretch a gate" if stretches else "one stretch"
            yield f"{name}, {how}: {differ} of {len(drawn)} garblers tell the simulator", not differ
        if gates(circuit) < 2:
            yield f"{name}: an evaluator's view tells nothing", not any(evaluator_tells(circuit, seed) for seed in range(6))


def flaws():
    """Runs that are broken, which the comparison must see."""
    chain = CIRCUITS["a chain"]
    for flaw in ("one mask", "one pad", "labels as they come", "outputs first"):
        found = sum(garbler_differs(chain, seed, flaw=flaw) for seed in range(20))
        yield f"{flaw}: {found} of 20 garblers tell", found > 0
    found = sum(evaluator_tells(CIRCUITS["one gate"], seed, masked=False) for seed in range(6))
    yield f"results without masks: {found} of 6 evaluators tell", found > 0


def main():
    return told(list(views()) + list(flaws()))


if __name__ == "__main__":
    sys.exit(main())
