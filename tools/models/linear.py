"""What the checks of correlated OT hash by: a random linear map, known by what it maps to zero.

A batch's columns are hashed by a map that is linear over GF(2), drawn when all columns are fixed: a vector other than
zero has the hash zero with chance 1/F, F = 2^m (2^128 in the library). The models keep vectors to 2 or 3 dimensions.
Whether two vectors hash alike depends on the map's kernel alone, and of a random map to m bits each kernel has a chance
that is a polynomial in 1/F: so F itself need not be small.
"""

from fractions import Fraction
from itertools import combinations, product


def spanned(vectors):
    """All sums of some of `vectors`, which are numbers whose bits are coordinates."""
    found = {0}
    for vector in vectors:
        found |= {vector ^ other for other in found}
    return frozenset(found)


def subspaces(dimension):
    """Every subspace of GF(2)^dimension, as the set of its vectors."""
    whole = range(1, 2**dimension)
    return sorted({spanned(some) for size in range(dimension + 1) for some in combinations(whole, size)}, key=sorted)


def kernels(dimension, bits):
    """(chance, kernel) of a uniformly random linear map from GF(2)^dimension to `bits` bits."""
    found = []
    for kernel in subspaces(dimension):
        rank = dimension - (len(kernel).bit_length() - 1)
        # Injective on what is left of the space by the kernel, and zero on the kernel.
        chance = Fraction(1, 2 ** (bits * (dimension - rank)))
        for i in range(rank):
            chance *= 1 - Fraction(2**i, 2**bits)
        if chance > 0:
            found.append((chance, kernel))
    assert sum(chance for chance, _ in found) == 1
    return found


def hashed(vector, kernel):
    """The hash of a vector: two have the same where they differ by one of the kernel's."""
    return min(vector ^ other for other in kernel)


def rank(vectors):
    return len(spanned(vectors)).bit_length() - 1


class Code:
    """A linear code by its generators, words as tuples of bits, of which the first are the message."""

    def __init__(self, *generators):
        assert all(row[: len(generators)] == tuple(int(i == j) for j in range(len(generators))) for i, row in enumerate(generators))
        self.generators = generators
        self.length, self.dimension = len(generators[0]), len(generators)

    def word(self, message):
        """The word of a message, whose parts may be bits or, column by column, vectors of bits."""
        parts = [0] * self.length
        for part, generator in zip(message, self.generators):
            parts = [old ^ (part if bit else 0) for old, bit in zip(parts, generator)]
        return tuple(parts)

    def words(self):
        return {self.word(message) for message in product((0, 1), repeat=self.dimension)}

    def distance(self):
        return min(sum(word) for word in self.words() if any(word))
