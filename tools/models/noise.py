"""The noise of questions, exactly: what a result is worth to who wants to know of one key.

A question has n numbers in each group, each of which a key changes by d at most. Noise is drawn digit by digit, as
`docs/how/batch.md` has it; here its distribution is computed as fractions, from thresholds of this program's own, and
so is that of whole results of small tables. `lost(...)` is the least δ for which a result is (ε, δ)-differentially
private between two tables: the sum of max(0, P − e^ε·Q) over all results.
"""

import functools
import itertools
from decimal import Decimal, getcontext
from fractions import Fraction
from math import exp

getcontext().prec = 60
WORD = 2**64


def thresholds(rate):
    """Of each digit of a geometric number of that rate, how many words of 64 bits make it 1."""
    found = []
    while True:
        x = Decimal(rate.numerator) / Decimal(rate.denominator) * 2 ** len(found)
        words = int(Decimal(WORD) / (1 + x.exp()))
        if words == 0:
            return found
        found.append(words)


def geometric(words):
    """The probability of each number that such digits make."""
    chances = [Fraction(1)]
    for word in words:
        one = Fraction(word, WORD)
        chances = [chance * (1 - one) for chance in chances] + [chance * one for chance in chances]
    return chances


def exact_noise(rate):
    """The probability of each difference of two of them."""
    one = geometric(thresholds(rate))
    found = {}
    for a, b in itertools.product(range(len(one)), repeat=2):
        found[a - b] = found.get(a - b, 0) + one[a] * one[b]
    return found


@functools.cache
def noise(rate):
    """The same in floating point."""
    return {z: float(chance) for z, chance in exact_noise(rate).items()}


class Question:
    """COUNT(*) and SUM(CLIP(x, 0, d)) of a group, which is shown from `least` rows on, with an epsilon.

    What is wrong in it, if anything: "whole" gives each number all of epsilon, "narrow" takes a sum for a count,
    "bare" compares the number of rows without its noise, "one-sided" subtracts nothing.
    """

    def __init__(self, epsilon, d, least=0, wrong=None):
        self.epsilon, self.d, self.least, self.wrong = Fraction(epsilon), d, least, wrong

    def noises(self):
        n = 1 if self.wrong == "whole" else 2
        d = 1 if self.wrong == "narrow" else self.d
        for change in (1, d):
            rate = self.epsilon / (n * change)
            if self.wrong == "one-sided":
                yield {z: float(chance) for z, chance in enumerate(geometric(thresholds(rate)))}
            else:
                yield noise(rate)

    def results(self, rows):
        """The probability of each result of a group's rows, which are numbers; None where it is not shown."""
        count, total = len(rows), sum(min(max(x, 0), self.d) for x in rows)
        of_count, of_sum = self.noises()
        found = {}
        for (y, p), (z, q) in itertools.product(of_count.items(), of_sum.items()):
            by = count if self.wrong == "bare" else count + y
            result = (count + y, total + z) if by >= self.least else None
            found[result] = found.get(result, 0.0) + p * q
        return found


def lost(question, rows, others, epsilon=None):
    """The least δ between these two tables, either way."""
    factor = exp(float(question.epsilon if epsilon is None else epsilon))
    ours, theirs = question.results(rows), question.results(others)
    results = ours.keys() | theirs.keys()

    def one_way(p, q):
        return sum(max(0.0, p.get(r, 0.0) - factor * (1 + 1e-9) * q.get(r, 0.0)) for r in results)

    return max(one_way(ours, theirs), one_way(theirs, ours))
