#!/usr/bin/env python3
"""Holds the noise of questions against what it promises (noise.py). Ends with `N passed, N failed`."""

import sys
from fractions import Fraction
from math import exp, isclose, tanh
from pathlib import Path
from random import Random

from noise import Question, exact_noise, lost

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402

# What the digits are off by is 2^-56; what floating point is off by, over all results, is less than this.
LEFT = 2.0**-50
PRIVATE = [(1, 2, 0), (1, 2, 4), (Fraction(3, 2), 3, 5), (2, 1, 1), (3, 4, 0)]
BROKEN = ["whole", "narrow", "bare", "one-sided"]


def is_geometric(rate):
    """Whether digits make the two-sided geometric distribution of that rate."""
    found, x = exact_noise(rate), float(rate)
    distance = sum(abs(float(p) - tanh(x / 2) * exp(-x * abs(z))) for z, p in found.items()) / 2
    falls = all(isclose(found[z] / found[z + 1], exp(x), rel_tol=1e-12) for z in range(8))
    return sum(found.values()) == 1 and distance < 1e-14 and falls and found[5] == found[-5]


def tables(d):
    """A group's rows, and the same with one key more."""
    rows = [Random(d).randint(0, d) for _ in range(5)]
    for key in (0, 1, d):
        yield rows, [*rows, key]
        yield [], [key]


def main():
    verdicts = []
    for rate in (Fraction(1), Fraction(1, 2), Fraction(3, 7), Fraction(2)):
        verdicts.append((f"digits of rate {rate} make the two-sided geometric distribution", is_geometric(rate)))
    for epsilon, d, least in PRIVATE:
        question = Question(epsilon, d, least)
        worst = max(lost(question, *pair) for pair in tables(d))
        verdicts.append((f"epsilon {epsilon}, sums up to {d}, from {least} rows on: lost {worst:.1e}", worst < LEFT))
    tight = lost(Question(2, 2), [1], [1, 2], epsilon=1.9)
    verdicts.append((f"epsilon 2 is not 1.9: lost {tight:.1e}", tight > 0.001))
    for wrong in BROKEN:
        worst = lost(Question(1, 3, 5, wrong), [1] * 4, [1] * 4 + [3])
        verdicts.append((f"the model sees that noise is {wrong}: lost {worst:.2f}", worst > 0.01))
    changed = Question(1, 3)
    verdicts.append(("a changed row costs twice epsilon at most", lost(changed, [0, 1], [3, 1], epsilon=2) < LEFT))
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
