"""VOLE over GF(2^128): what a tree's value tells of Δ. docs/security-notes.md, docs/proofs/vole.md.

*What is modelled.* A tree's correction holds H(s + Δ) + y·Δ for a point s that the receiver knows and a factor y of the
field, where H(x) = π(σ(x)) + σ(x) for an ideal permutation π and the linear σ that swaps the halves and adds one. So
what the receiver has is π(σ(s) + σ(Δ)) + σ(Δ) + y·Δ. It asks π's inverse for the value with σ(Δ) + y·Δ taken off, for
a guess of that sum: whoever guesses right has σ(Δ), and Δ. In the order of messages: y, the message, the query.

- `chosen`: y are choice bits of base correlations, which a cheating receiver sends as it likes. For some y the map
  σ + y has half the rank.
- shifted: the sender adds a random factor once y is fixed. Each Δ other than zero is in the kernel for one y alone, so
  the kernels have 2 elements on average, less 1/F: a query is right with (2 − 1/F)/F.

*What is left out.* Queries of π itself, and a second tree that confirms a guess.

*Why the tiny case says something.* The map's ranks come in pairs of halves for every even number of bits, and the
average is an identity; the number of bits is a parameter.
"""

from fractions import Fraction

from games import solve, uniform
from small_sets import Field


class Factor:
    """A receiver that sends a factor and guesses σ(Δ) + y·Δ, once it has seen how it was shifted."""

    def __init__(self, bits, shifted):
        self.field, self.half, self.shifted = Field(bits), bits // 2, shifted

    def sigma(self, x):
        high, low = x >> self.half, x & ((1 << self.half) - 1)
        return (high ^ low) << self.half | high

    def states(self):
        values = range(self.field.size)
        return uniform((delta, shift) for delta in values for shift in (values if self.shifted else [0]))

    def choices(self, history):
        return range(self.field.size) if len(history) < 2 else []

    def answer(self, state, history, choice):
        return None if history else state[1]

    def score(self, state, history):
        delta, shift = state
        factor = history[0][0] ^ shift
        return int(history[1][0] == self.sigma(delta) ^ self.field.products[factor][delta])


def average(bits):
    """The identity of kernels."""
    size = 2**bits
    return (2 - Fraction(1, size)) / size


def cases():
    for bits in (2, 4):
        yield "VOLE: a query that tells Δ, shifted factors", f"GF(2^{bits})", solve(Factor(bits, True)), "=", average(bits)


def flaws():
    yield "VOLE: factors that the receiver chooses", solve(Factor(4, False)), average(4)
