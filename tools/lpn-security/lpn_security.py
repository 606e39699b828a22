#!/usr/bin/env python3
"""Cost of the known attacks on the LPN parameter sets of silent OT, from the standard library alone.

An instance is (N, k, t): N samples, a secret of k bits, t noisy positions, either anywhere (uniform noise) or
one in each of t blocks of N/t (regular noise). A dual set, n outputs from N noise positions, is the instance
(N, N − n, t). Costs are log2 of bit or field operations, memory free, each attack at its best parameters.
Where several instances share a matrix, an attack is done when it breaks one of them.

Attacks and where their cost formulas come from:

  gauss          pooled Gauss (Esser–Kübler–May 2017), cost as in Liu–Wang–Yang–Yu 2022/712
  sd, sd2        statistical decoding and its second version, 2022/712
  sd-isd         Stern–Dumer information-set decoding, 2022/712
  bjmm           Becker–Joux–May–Meurer with two levels of representations, 2022/712
  perm, enum,    regular information-set decoding of Esser–Santini 2023/1568: by permutation, enumeration and
    repr           representations
  agb            algebraic attack of Briaud–Øygarden 2023/176
  agb2           the same with two systems of different size, 2025/1476
  hybrid         puncturing and quadratic equations, Wang et al. 2025/1284
  linear-test    distinguishing by one word of the code's (pseudo-)distance δN: bias (1 − 2δ)^t, for dual sets that
                 name a distance
  pooled-isd     sd-isd or bjmm on hardly more samples than unknowns, drawn anew each time: the pooled
                 variants of Esser–Kübler–May 2017, the number of noisy samples left open
  local-gauss    local codes: pooled Gauss on the rows that meet chosen columns only; docs/lpn-security.md
                 derives these
  local-isd      pooled-isd on these rows
  local-hybrid   quadratic equations of regular noise on these rows
  interleaved    binary codes with noise values of several bits: instances with the same noisy positions

`quantum` is what pooled-isd and local-isd cost an attacker with a quantum computer: Grover's search takes the
square root of the number of trials, each of which eliminates anew, as nothing can be shared or stored in between.

For regular noise the first five, and pooled-isd, run on (N − t, k − t, t): each block gives one parity check
for free. For local codes `bound` says what the local attacks would cost with the best choice of columns that
exists at all.

Usage:
  lpn_security.py N K T [--uniform]       one instance
  lpn_security.py --sets FILE             sets in JSON, `-` for standard input; see `parse_set`
  lpn_security.py --reference             the sets of docs/lpn-security.md, with what is expected of them
  lpn_security.py --peel                  computes the table `PEELED` again (minutes)
  lpn_security.py --peel-product 54272    peels codes of so many outputs with the library's permutations
Options: --json; --minimum BITS exits with 1 if a set has less, its bound included, papers' sets excepted.
"""

import argparse
import json
import math
import random
import sys
from array import array
from dataclasses import dataclass, replace
from functools import cache

INFEASIBLE = math.inf


@dataclass(frozen=True)
class Instance:
    """An LPN instance. `distance` is the relative pseudo-distance of a dual code, if the set relies on one;
    `quasi_cyclic` grants every attack the factor √N of decoding one out of many (Sendrier 2011). With noise
    values in a field of 2^k elements the attacks run on the best of its projections to GF(2), whose noise is
    no longer regular. A field of odd size has none; the binary attacks, which have no values to guess, then
    cost no more than theirs over the field. `locality` is the number of ones in a row of a primal set's
    matrix, None for a random matrix; `accumulate` is the length of the blocks that a dual set's code folds
    after accumulating twice. `scaled` codes multiply by random values of the whole field before they
    accumulate, so that no projection of their words is a word of a binary code, whatever the field's
    characteristic. `instances` share one matrix. `paper` marks a set that is kept for comparison
    alone."""

    name: str
    samples: int
    dimension: int
    weight: int
    regular: bool = True
    distance: float | None = None
    quasi_cyclic: bool = False
    field: int = 2
    locality: int | None = None
    accumulate: int | None = None
    scaled: bool = False
    instances: int = 1
    paper: bool = False

    def __post_init__(self):
        if not 0 < self.dimension < self.samples:
            raise ValueError(f"{self.name}: the dimension must be between 0 and the number of samples")
        if not 0 < self.weight <= self.samples - self.dimension:
            raise ValueError(f"{self.name}: the weight must be between 1 and N - k")
        if self.regular and self.samples // self.weight < 2:
            raise ValueError(f"{self.name}: regular noise needs blocks of at least 2")
        if self.distance is not None and not 0 < self.distance < 0.5:
            raise ValueError(f"{self.name}: the relative distance must be between 0 and 1/2")
        if self.field < 2 or self.field % 2 == 0 and self.field & (self.field - 1):
            raise ValueError(f"{self.name}: the field's size must be a power of a prime")
        if self.locality is not None and self.locality < 3:
            raise ValueError(f"{self.name}: the locality must be at least 3")
        if self.accumulate is not None and (self.accumulate < 1 or self.samples != 2 * self.dimension):
            raise ValueError(f"{self.name}: an accumulating code has rate 1/2 and blocks")
        if self.instances < 1:
            raise ValueError(f"{self.name}: at least one instance uses a matrix")

    def projected(self):
        """The instance over GF(2) that the noise's best projection gives. Each nonzero value keeps a one with probability
        q/(2(q − 1)); of q − 1 projections the lightest is about √(2 ln(q − 1)) standard deviations below the mean."""
        if self.field == 2 or self.field % 2 or self.scaled:
            return replace(self, field=2)
        keeps = self.field / (2 * (self.field - 1))
        deviation = math.sqrt(self.weight * keeps * (1 - keeps))
        weight = int(self.weight * keeps - math.sqrt(2 * math.log(self.field - 1)) * deviation)
        return replace(self, weight=weight, regular=False, distance=None, field=2)

    @property
    def degree(self):
        """The bits of a noise value in a field of characteristic 2 under a binary code, otherwise 1."""
        return 1 if self.field % 2 or self.scaled else self.field.bit_length() - 1

    @property
    def block(self):
        return self.samples // self.weight


def parse_set(entry):
    """An instance from JSON: name, noise (`regular` or `uniform`), t, and either N and k, or (dual) N and n;
    `distance`, `quasi_cyclic`, `locality`, `accumulate`, `scaled` and `paper` where they apply, `field` for noise over
    more than GF(2), `instances` where more than one use a matrix."""
    if not isinstance(entry, dict):
        raise ValueError("a set must be a JSON object")
    try:
        name, noise = str(entry["name"]), entry.get("noise", "regular")
        samples, weight = int(entry["N"]), int(entry["t"])
        dimension = int(entry["k"]) if "k" in entry else samples - int(entry["n"])
    except KeyError as missing:
        raise ValueError(f"set {entry.get('name', '?')}: {missing} is missing") from None
    if noise not in ("regular", "uniform"):
        raise ValueError(f"{name}: unknown noise {noise!r}")
    quasi_cyclic = bool(entry.get("quasi_cyclic", False))
    local = {key: int(entry[key]) for key in ("field", "locality", "accumulate", "instances") if key in entry}
    paper, scaled = bool(entry.get("paper", False)), bool(entry.get("scaled", False))
    distance, regular = entry.get("distance"), noise == "regular"
    return Instance(name, samples, dimension, weight, regular, distance, quasi_cyclic, scaled=scaled, paper=paper, **local)


# Arithmetic in logarithms.


def log2_binomial(n, m):
    """log2 of n choose m; −∞ where that is 0."""
    if m < 0 or m > n:
        return -math.inf
    return (math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)) / math.log(2)


def log2_sum(*terms):
    """log2 of the sum of 2^term."""
    top = max(terms)
    if top == -math.inf or top == math.inf:
        return top
    return top + math.log2(sum(2.0 ** (term - top) for term in terms))


def log2_positive(x):
    """log2 of an integer or float of any size; 0 for what is below 1."""
    return math.log2(x) if x > 1 else 0.0


def minimise(cost, low, high, points=24, exhaustive=48):
    """The least `cost(i)` for low ≤ i ≤ high of a function that falls, then rises, up to small steps.

    Looks at a grid, closes in on the best point's neighbours, and tries every integer at the end. Returns (cost, i).
    """
    seen = {}

    def at(i):
        if i not in seen:
            seen[i] = cost(i)
        return seen[i]

    if low > high:
        return INFEASIBLE, None
    left, right = low, high
    while right - left > exhaustive:
        grid = sorted({left + (right - left) * i // points for i in range(points + 1)})
        best = min(range(len(grid)), key=lambda i: at(grid[i]))
        narrower = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
        if at(grid[best]) == INFEASIBLE or narrower == (left, right):
            break
        left, right = narrower
    for i in range(left, min(right, left + 4 * exhaustive) + 1):
        at(i)
    place = min(seen, key=seen.get)
    return seen[place], place


def first_true(condition, low, high):
    """The least i in low..high with `condition(i)`, which stays true once it is; None if there is none."""
    if low > high or not condition(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if condition(middle):
            high = middle
        else:
            low = middle + 1
    return low


# Attacks on noise at any positions.


def gauss(n, k, t):
    """Guess k samples free of noise, solve with an exponent of 2.8."""
    return 2.8 * math.log2(min(k, n - k)) - log2_binomial(n - k, t) + log2_binomial(n, t)


def statistical_decoding(n, k, t):
    if n - k - t <= 0:
        return INFEASIBLE
    return math.log2(k + 1) + 2 * t * math.log2((n - t + 1) / (n - k - t))


def statistical_decoding_2(n, k, t):
    rest = k - math.floor(gauss(n, k, t))
    return statistical_decoding(n, rest, t) if rest > 0 else INFEASIBLE


def elimination(n, k, l):
    """log2 of a partial Gaussian elimination by the method of the four Russians, without the factor n of a row."""
    rows = n - k - l
    return INFEASIBLE if rows < 2 else math.log2(rows) + math.log2(n) - math.log2(max(math.log2(rows), 1))


def even_window(k, l):
    """l, rounded so that k + l is even and halves are whole."""
    return (k + l) // 2 * 2 - k + 2


def sd_isd(n, k, t):
    total = log2_binomial(n, t)

    def cost(p, l):
        l = even_window(k, l)
        lists = log2_binomial((k + l) // 2, p // 2)
        found = 2 * lists - l
        success = log2_binomial(n - k - l, t - p) + 2 * lists - total
        if success >= 0 or success == -math.inf:
            return INFEASIBLE
        return math.log2(n) + log2_sum(elimination(n, k, l), 1 + lists, 1 + found) - success

    def best_window(p):
        return minimise(lambda l: cost(p, l), 0, min(n - k - 8, 4000))[0]

    best = INFEASIBLE
    for p in range(0, t // 2, 2):
        here = best_window(p)
        best = min(best, here)
        if here > best + 30:
            break
    return best


def bjmm(n, k, t):
    total = log2_binomial(n, t)

    def chance(p, l):
        return log2_binomial(n - k - l, t - p) - total

    def work(l, lists):
        return math.log2(n) + log2_sum(elimination(n, k, l), lists)

    return representations(k, t, min((n - k - 2) // 8, 2000), chance, work)


def representations(k, t, widest, chance, work):
    """log2 cost of two levels of representations on a window of k + l positions, l at most `widest`, where
    `chance(p, l)` is log2 of the chance that the noise in the window is one given word of weight p, and
    `work(l, lists)` log2 of a trial's cost when its lists have so many entries."""

    def cost(p2, e2, e1, l):
        l = even_window(k, l)
        window = k + l
        p1 = 2 * (p2 - e2)
        p = 2 * (p1 - e1)
        base = log2_binomial(window // 2, p2 // 2)
        ways1, ways = log2_binomial(window, p1), log2_binomial(window, p)
        # Chance that two words of the weight below meet in exactly e positions.
        meet2 = log2_binomial(p2, e2) + log2_binomial(window - p2, p2 - e2) - log2_binomial(window, p2)
        meet1 = log2_binomial(p1, e1) + log2_binomial(window - p1, p1 - e1) - ways1
        if min(base, ways1, ways, meet1, meet2) == -math.inf:
            return INFEASIBLE
        # As many constraints as there are representations, so that one of them survives.
        r2 = min(max(int(meet2 + 4 * base - ways1), 0), l - 1)
        r1 = min(max(int(meet1 + 2 * ways1 - ways) - r2, 0), l - r2 - 1)
        third = 2 * base - r2
        second = 2 * third - r1
        kept = min(meet2 + second, ways1 - r1 - r2)
        first = 2 * kept - l + r1 + r2
        found = min(meet1 + first, ways - l)
        success = chance(p, l) + l + found
        if success >= 0 or success == -math.inf:
            return INFEASIBLE
        return work(l, log2_sum(3 + base, 2 + third, 1 + second, 1 + first)) - success

    def best_of(p2, l):
        best = INFEASIBLE
        for e2 in range(p2):
            p1 = 2 * (p2 - e2)
            for e1 in range(max(0, p1 - t // 2), p1):
                best = min(best, cost(p2, e2, e1, l))
        return best

    best = INFEASIBLE
    for p2 in range(2, min(t, 40), 2):
        here = minimise(lambda l: best_of(p2, l), 2, widest, points=10, exhaustive=12)[0]
        best = min(best, here)
        if here > best + 8:
            break
    return best


# Attacks on regular noise.


def truncated(n, k, t):
    """The same with N a multiple of t: a few samples are dropped from the last block."""
    block = n // t
    return block * t, k - (n - block * t)


def regular_permutation(n, k, t):
    n, k = truncated(n, k, t)
    reduced = k - t
    return 2 * math.log2(n - reduced) + math.log2(n) - t * math.log2(1 - max(reduced, 0) / n)


def regular_success(n, t, p, per_block):
    """log2 of the chance that p blocks err within the `per_block` chosen positions, t − p outside."""
    share = per_block * t / n
    if share >= 1:
        return -math.inf
    halves = log2_binomial(t // 2, p // 2) + log2_binomial((t + 1) // 2, p // 2)
    return halves + p * math.log2(share) + (t - p) * math.log2(1 - share)


def regular_enumeration(n, k, t):
    n, k = truncated(n, k, t)
    reduced = max(k - t, 1)
    best = INFEASIBLE
    for p in range(0, min(60, t), 2):
        guess = max(0.0, log2_binomial(t // 2, p // 2) + p / 2 * math.log2(max(reduced / t, 1)))
        for l in range(math.ceil(guess / 2), min(math.ceil(1.5 * guess) + 1, n - reduced)):
            per_block = (reduced + l) / t
            success = regular_success(n, t, p, per_block)
            lists = log2_binomial(t // 2, p // 2) + p / 2 * math.log2(per_block)
            work = max(2 * math.log2(n - reduced), 1 + lists, 2 * lists - l)
            best = min(best, math.log2(n) + work - success)
    return best


def regular_representation(n, k, t):
    n, k = truncated(n, k, t)
    reduced = max(k - t, 1)
    best = INFEASIBLE
    for p in range(0, min(60, t), 4):
        for e in range(0, 32, 2):
            weight = p / 2 + e
            guess = log2_binomial(t // 2, weight / 2) + weight / 2 * math.log2(reduced)
            ways = 2 * (log2_binomial(p / 2, p / 4) + log2_binomial(t / 2 - p / 2, e / 2))
            if guess < 0 or ways == -math.inf:
                continue
            constraint = math.floor(ways)
            for l in range(math.floor(guess), math.ceil(3 * guess)):
                per_block = (reduced + l) / t
                base = log2_binomial(t // 2, weight / 2) + weight / 2 * math.log2(per_block)
                second = 2 * base - constraint
                last = 2 * second - (l - constraint)
                work = max(2 * math.log2(n - reduced), 2 + base, 1 + second, last)
                best = min(best, math.log2(n) + work - regular_success(n, t, p, per_block))
    return best


class Macaulay:
    """The quadratic system of regular noise: coefficients of its Hilbert series up to degree 4.

    A block of β positions has β − 1 unknowns, of which μ are guessed to be zero in f of the blocks; two unknowns of
    a block multiply to zero; N − k linear equations hold.
    """

    def __init__(self, n, k, t):
        self.n, self.k, self.t, self.block = n, k, t, n // t
        equations = n - k - 1
        # (1 + z)^−equations
        self.relations = [
            (-1) ** i * math.comb(equations + i - 1, i) if equations + i > 0 else int(i == 0) for i in range(5)
        ]

    @staticmethod
    def times(left, right):
        return [sum(left[i] * right[d - i] for i in range(d + 1)) for d in range(5)]

    def monomials(self, f, mu):
        guessed = [math.comb(f, i) * (self.block - mu - 1) ** i for i in range(5)]
        whole = [math.comb(self.t - f, i) * (self.block - 1) ** i for i in range(5)]
        return self.times(guessed, whole)

    def columns(self, f, mu, degree):
        """Monomials of degree 1 to `degree`."""
        return sum(self.monomials(f, mu)[1 : degree + 1])

    def left(self, f, mu, degree):
        """Monomials that the equations up to `degree` leave free, at least 1."""
        series = self.times(self.monomials(f, mu), self.relations)
        return max(sum(series[1 : degree + 1]), 1)

    def degree(self, f, mu, cumulative):
        """The degree at which the system is solved, at most 4, or None."""
        series = self.times(self.monomials(f, mu), self.relations)
        value = series[1]
        for degree in (2, 3, 4):
            value = value + series[degree] if cumulative or degree == 2 else series[degree]
            if value < 1:
                return degree
        return None

    def guess(self, f, mu):
        """log2 of the expected number of guesses."""
        return -f * math.log2(1 - mu / self.block) if mu < self.block else INFEASIBLE

    def least_guess(self, f, degree, cumulative):
        """The least μ for which the system with f guessed blocks is solved at `degree` or below."""
        if f == 0:
            solved = self.degree(0, 0, cumulative)
            return 0 if solved is not None and solved <= degree else None
        high = min(self.k // f, self.block - 1)

        def solved(mu):
            at = self.degree(f, mu, cumulative)
            return at is not None and at <= degree

        return first_true(solved, 0, high)


def agb(n, k, t):
    system = Macaulay(n, k, t)
    best = INFEASIBLE

    def cost(f, mu, degree):
        if mu >= system.block or f * mu > k:
            return INFEASIBLE
        at = system.degree(f, mu, False)
        if at is None or at > degree:
            return INFEASIBLE
        linear = 2 * math.log2(system.columns(f, mu, at)) + math.log2(3 * (k + 1 - f * mu))
        return linear + system.guess(f, mu)

    for degree in (2, 3, 4):
        for f in range(0, t + 1):
            mu = system.least_guess(f, degree, False)
            if mu is None:
                continue
            for extra in range(0, 4 if f else 1):
                best = min(best, cost(f, mu + extra, degree))
    return best


def agb2(n, k, t):
    """Two stages: a system with few guesses is reduced once, and what it leaves is solved for every guess."""
    system = Macaulay(n, k, t)
    best = INFEASIBLE
    solved = system.degree(0, 0, True)
    if solved is not None:
        best = math.log2(3 * (k + 1)) + 2 * math.log2(system.columns(0, 0, solved))
        if solved == 2:
            return best
    for degree in (2, 3, 4):
        pairs = ((f, system.least_guess(f, degree, True)) for f in range(1, t + 1))
        pairs = [(system.guess(f, mu), f, mu) for f, mu in pairs if mu is not None]
        if not pairs:
            continue
        guesses, f, mu = min(pairs)

        def cost(f1, mu1):
            columns, left = system.columns(f1, mu1, degree), system.left(f1, mu1, degree)
            rank = max(columns - left, 1)
            dense = math.log2(5.64) + 2.8 * log2_positive(columns)
            sparse = log2_positive(columns) + 2 * log2_positive(rank) - log2_positive(log2_positive(rank))
            once = max(min(dense, sparse), 0)
            again = math.log2(5.64) + 2.8 * log2_positive(min(left, rank))
            return log2_sum(once + system.guess(f1, mu1), again + guesses)

        def best_mu(f1):
            return minimise(lambda mu1: cost(f1, mu1), 0, mu)[0]

        best = min(best, minimise(best_mu, 2, f)[0] if f > 2 else INFEASIBLE)
    return best


def hybrid_cost(n, k, t, enumerated, guessed):
    """Cost with `enumerated` blocks tried exhaustively and `guessed` positions, spread evenly, held to be noise-free."""
    block, blocks = n // t, t - enumerated
    u, extra = divmod(guessed, blocks)
    if u + 2 > block - 1:
        return INFEASIBLE
    failure = -(blocks - extra) * math.log2(1 - u / block) - (extra * math.log2(1 - (u + 1) / block) if extra else 0)
    unknowns = k - t - guessed
    pivots = (n - k) // (block - 1)
    rest = n - k - pivots * (block - u - 2)
    eliminate = log2_positive(rest * (n - k) * (rest + unknowns))
    if unknowns <= 0:
        return failure + eliminate
    quadratic = (blocks - extra) * math.comb(block - u - 1, 2) + extra * math.comb(block - u - 2, 2)
    tried = (block - 1) * enumerated
    free = unknowns - tried
    trials = enumerated * math.log2(block)
    if free < 0 or free > math.sqrt(2 * quadratic) - 2:
        return INFEASIBLE
    if free == 0:
        return failure + log2_sum(eliminate, 0, trials)
    reduce = max(0, 4 * math.log2(free) + 2 * math.log2(unknowns) - 3 - math.log2(max(log2_positive(free * free / 2), 1)))
    each = 1.25 * (2 * free * free * tried + free * tried * tried)
    each += (2.5 * free) ** 3 / math.log2(max(2.5 * free, 2))
    return failure + log2_sum(eliminate, reduce, trials + log2_positive(each))


def hybrid(n, k, t):
    n, k = truncated(n, k, t)
    if k <= t:
        return INFEASIBLE
    best = INFEASIBLE
    for enumerated in range(0, t):
        if enumerated and enumerated * math.log2(n // t) >= best:
            break
        cost = lambda guessed: hybrid_cost(n, k, t, enumerated, guessed)
        most = min(k - t, (t - enumerated) * (n // t - 3))
        feasible = first_true(lambda g: cost(g) < INFEASIBLE, 0, max(0, min(most, k - t - (n // t - 1) * enumerated)))
        if feasible is not None:
            last = min(most, k - t - (n // t - 1) * enumerated)
            best = min(best, minimise(cost, feasible, last)[0])
    return best


def linear_test(instance):
    """One test by a word of weight δN: each block is hit with probability δ, and a hit by a random nonzero value of q − 1
    leaves a bias of −1/(q − 1), so the bias is (1 − δq/(q − 1))^t."""
    return -instance.weight * math.log2(1 - instance.distance * instance.field / (instance.field - 1))


# Attacks on few samples, and on those that chosen columns leave.
#
# A local code's row has a handful of ones. Of the rows that meet none but σk chosen columns there are many
# more than σ^d·N when the columns are chosen well; as soon as they are σk or more, they are an instance of
# their own with σk unknowns, as noisy as the whole one.

# σ by N/k for ten ones a row: the lowest of the sizes 2^12, 2^14 and 2^16. `--peel` computes it.
PEELED = {
    10: {
        2.0: 0.8485, 2.378: 0.8228, 2.828: 0.7993, 3.364: 0.7777, 4.0: 0.7561, 4.757: 0.7366,
        5.657: 0.7195, 6.727: 0.7013, 8.0: 0.6842, 9.514: 0.6694, 11.314: 0.6538, 13.454: 0.6389,
        16.0: 0.6223, 19.027: 0.6110, 22.627: 0.5979, 26.909: 0.5839, 32.0: 0.5722, 38.055: 0.5598,
        45.255: 0.5489, 53.817: 0.5376, 64.0: 0.5266,
    },
}
# σ for a code that accumulates twice and folds blocks of 32, at any length.
PEELED_ACCUMULATE = {32: 0.7694}


def peel(rows, columns, arity, group=1):
    """The share of the columns that is left when columns of least degree are taken away, with all rows that
    meet them, for as long as there are as many rows as unknowns. `rows` has `arity` columns for each row; a
    column stands for `group` unknowns."""
    meets = array("I", bytes(4 * (columns + 1)))
    for column in rows:
        meets[column + 1] += 1
    degrees = meets[1:]
    for column in range(columns):
        meets[column + 1] += meets[column]
    places, incident = meets[:-1], array("I", bytes(4 * len(rows)))
    for place, column in enumerate(rows):
        incident[places[column]] = place // arity
        places[column] += 1
    by_degree = [[] for _ in range(max(degrees) + 1)]
    for column, degree in enumerate(degrees):
        by_degree[degree].append(column)
    there, alive = bytearray(b"\1") * columns, bytearray(b"\1") * (len(rows) // arity)
    left, kept, least = columns, len(alive), 0
    while left > 1:
        while not by_degree[least]:
            least += 1
        column = by_degree[least].pop()
        if not there[column] or degrees[column] != least:
            continue
        gone = {row for row in incident[meets[column] : meets[column + 1]] if alive[row]}
        if kept - len(gone) < group * (left - 1):
            break
        there[column] = 0
        left -= 1
        kept -= len(gone)
        for row in gone:
            alive[row] = 0
            for other in rows[row * arity : (row + 1) * arity]:
                if there[other]:
                    degree = degrees[other] = degrees[other] - 1
                    by_degree[degree].append(other)
                    least = min(least, degree)
    return left / columns


def local_rows(columns, ratio, locality, rng):
    """The columns of the rows of a random local matrix, row by row; the number of columns a power of two."""
    shift = 33 - columns.bit_length()
    words = array("I", rng.randbytes(4 * locality * int(columns * ratio)))
    return array("I", (word >> shift for word in words))


def feistel_inverse(length, rng):
    """The inverse of one of the library's permutations of 0..length, as `tacit_crypto::accumulate` computes them:
    four rounds over Z_a × Z_b."""
    log_b = min((length & -length).bit_length() - 1, ((length.bit_length() - 1) + 1) // 2)
    a, mask, word = length >> log_b, (1 << log_b) - 1, 0xFFFFFFFF
    keys = [rng.getrandbits(32) for _ in range(4)]

    def mix(x):
        x &= word
        x ^= x >> 16
        x = x * 0x7FEB352D & word
        x ^= x >> 15
        x = x * 0x846CA68B & word
        return x ^ x >> 16

    inverse = [0] * length
    for x in range(length):
        left, right = x >> log_b, x & mask
        for first, second in (keys[:2], keys[2:]):
            right = right + mix(left + first) & mask
            left = (left + (mix(right + second) * a >> 32)) % a
        inverse[left << log_b | right] = x
    return inverse


def accumulate_rows(outputs, block, rng, product=False):
    """The blocks that a noise position of the twice accumulating code depends on, four for each.

    With z the second accumulator's entries and a the first one's, e_i = a_i − a_{i−1} and a_π(j) = z_j −
    z_{j−1}. The entries of a block, half of them outputs but for the sum of others, are combinations of as
    many unknowns as it has outputs. The permutations are random ones, or those of the `product`."""
    positions = 2 * outputs
    if product:
        place, fold = feistel_inverse(positions, rng), feistel_inverse(positions, rng)
    else:
        place, fold = list(range(positions)), list(range(positions))
        rng.shuffle(place)
        rng.shuffle(fold)
    blocks = [z % outputs // block for z in fold]
    rows = array("I")
    for i in range(1, positions):
        for j in (place[i], place[i - 1]):
            rows.extend((blocks[j], blocks[max(j - 1, 0)]))
    return rows


def peel_again():
    """Prints both tables, from fixed seeds."""
    for locality in PEELED:
        for step in range(21):
            ratio = round(2 ** (1 + step / 4), 3)
            sizes = [1 << 12, 1 << 14, 1 << 16]
            shares = [peel(local_rows(k, ratio, locality, random.Random(k)), k, locality) for k in sizes]
            each = " ".join(f"{share:.4f}" for share in shares)
            print(f"{locality} ones, N/k = {ratio}: {min(shares):.4f} of {each}", flush=True)
    for block in PEELED_ACCUMULATE:
        sizes = [1 << 13, 1 << 15, 1 << 17, 1 << 19]
        shares = [peel(accumulate_rows(n, block, random.Random(n)), n // block, 4, block) for n in sizes]
        each = " ".join(f"{share:.4f}" for share in shares)
        print(f"blocks of {block}: {min(shares):.4f} of {each}", flush=True)


def peel_product(outputs, count):
    """Prints σ of the product's own permutations for so many seeds, and the weight of the words that follow."""
    for number in outputs:
        shares = []
        for seed in range(count):
            rows = accumulate_rows(number, 32, random.Random(f"{number} {seed}"), True)
            shares.append(peel(rows, number // 32, 4, 32))
        low, mean = min(shares), sum(shares) / count
        print(
            f"n = {number}, {count} seeds: σ {low:.4f} to {max(shares):.4f}, mean {mean:.4f}; "
            f"words of {low / 2:.4f}·N and more",
            flush=True,
        )


def peeled_share(ratio, locality):
    """σ by peeling, between the ratios of the table; a locality without a table is peeled here, at 2^11
    columns."""
    table = PEELED.get(locality)
    if table is None:
        table = PEELED[locality] = {}
    ratios = sorted(table)
    if not ratios or not ratios[0] <= ratio <= ratios[-1]:
        if ratio not in table:
            table[ratio] = peel(local_rows(1 << 11, ratio, locality, random.Random(1)), 1 << 11, locality)
        return table[ratio]
    for low, high in zip(ratios, ratios[1:]):
        if ratio <= high:
            part = math.log(ratio / low) / math.log(high / low)
            return table[low] + part * (table[high] - table[low])
    return table[ratios[-1]]


def chosen_share(instance):
    """σ by random choice or by peeling, the lower; None for a matrix in which a choice of columns gains
    nothing."""
    if instance.accumulate is not None:
        return PEELED_ACCUMULATE.get(instance.accumulate, 2 ** (-1 / 3))
    ratio = instance.samples / instance.dimension
    if instance.locality is None or ratio <= 1:
        return None
    return min(ratio ** (-1 / (instance.locality - 1)), peeled_share(ratio, instance.locality))


def first_moment_share(ratio, arity, group=1):
    """The σ below which no choice of columns is expected to exist that keeps as many rows as unknowns, by the
    number of choices and the large deviations of a Poisson variable; as in `peel`, a column stands for
    `group` unknowns."""

    def exists(share):
        choices = -share * math.log(share) - (1 - share) * math.log(1 - share)
        mean = ratio * share**arity
        return choices >= group * (share * math.log(share / mean) - share + mean)

    low, high = 1e-3, ratio ** (-1 / (arity - 1))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if exists(middle) else (middle, high)
    return high


def least_share(instance):
    """σ of `first_moment_share` for an instance, None where `chosen_share` is."""
    if instance.accumulate is not None:
        return first_moment_share(2, 4, instance.accumulate)
    if instance.locality is None or instance.samples <= instance.dimension:
        return None
    return first_moment_share(instance.samples / instance.dimension, instance.locality)


def row_weight(instance):
    """Ones in a row of the system that an attacker solves; None if it is not sparse. An entry of the
    accumulating code is an unknown or a sum of half of a block's."""
    if instance.accumulate is not None:
        return 2 + instance.accumulate
    return instance.locality


def checks_cost(unknowns, checks, weight):
    """log2 cost of as many parity checks between `unknowns` and a few more rows: by elimination, or for
    sparse rows by block Wiedemann, where two products with the matrix for each unknown make the sequence and
    the sum, and combining blocks of vectors costs the power 2.8 − 2 of their width."""
    dense = 2.8 * math.log2(unknowns)
    if weight is None:
        return dense
    return min(dense, 2 * math.log2(unknowns) + math.log2(2 * weight + checks**0.8))


def word_chance(instance, window, p, keeps=1.0):
    """log2 of the chance that the noise in a window of samples is one given word of weight p, where a value
    is seen with probability `keeps`. Regular noise is taken as spread evenly over the window, which is best
    for the attacker."""
    n, t = instance.samples, instance.weight
    if t < p or window >= n:
        return -math.inf
    if not instance.regular and keeps == 1:
        return log2_binomial(n - window, t - p) - log2_binomial(n, t)
    share = window / n * keeps
    inside = log2_binomial(t, p) + p * math.log2(share) + (t - p) * math.log2(1 - share)
    return inside - log2_binomial(window, p)


def halves_chance(instance, window, p, keeps=1.0):
    """log2 of the chance that p/2 noisy samples are in each half of a window and no others in it."""
    return word_chance(instance, window, p, keeps) + 2 * log2_binomial(window // 2, p // 2)


def few_samples(instance, unknowns, weight, most=24, keeps=1.0, instances=None, quantum=False):
    """log2 cost of Stern–Dumer, or of two levels of representations, on little more samples than unknowns.
    Each trial draws the samples anew and makes as many parity checks as tell the right candidate from all
    wrong ones. All instances share the parity checks, and each has lists of its own; with p = 0 the first
    checks refuse a trial. `quantum`: Stern–Dumer whose trials Grover searches, in all instances."""
    instances = math.log2(instances or instance.instances)
    # In a search all of a trial is done for one of the instances, and all of them are searched.
    shares, searched = (0.0, instances) if quantum else (instances, 0.0)

    def trials(success):
        return (min(0.0, success + searched)) / (2 if quantum else 1)

    def trial(l, lists):
        """Cost of lists of so many entries, l bits each."""
        checks = l + lists + 8
        shared = checks_cost(unknowns, checks, weight) - shares
        return log2_sum(shared, math.log2(unknowns * checks), math.log2(l) + lists)

    def halves(p, l):
        window = unknowns + even_window(unknowns, l)
        success = halves_chance(instance, window, p, keeps)
        if success >= 0 or success == -math.inf:
            return INFEASIBLE
        lists = log2_binomial(window // 2, p // 2)
        return trial(l, log2_sum(1 + lists, 2 * lists - l)) - trials(success)

    once = log2_sum(checks_cost(unknowns, 8, weight) - shares, 1 + math.log2(unknowns))
    best = once - trials(halves_chance(instance, unknowns, 0, keeps))
    for p in range(2, most + 1, 2):
        best = min(best, minimise(lambda l: halves(p, l), 1, 200)[0])
    if most == 0 or quantum:
        return best

    def chance(p, l):
        return word_chance(instance, unknowns + l, p, keeps)

    return min(best, representations(unknowns, instance.weight, 200, chance, trial))


def pooled_isd(instance):
    unknowns = instance.dimension - (instance.weight if instance.regular else 0)
    return few_samples(instance, unknowns, None) if unknowns > 1 else INFEASIBLE


def quantum(instance):
    """log2 cost of the trials' search by Grover, on all columns or on chosen ones."""
    binary = instance.projected()
    systems = [(binary.dimension - (binary.weight if binary.regular else 0), None)]
    if chosen_share(binary) is not None:
        systems.append((local_unknowns(binary, None), row_weight(binary)))
    bits = min(few_samples(binary, *system, quantum=True) for system in systems if system[0] > 1)
    # Decoding one out of many takes √N off the trials, of which the search takes the root.
    return bits - math.log2(binary.samples) / 4 if instance.quasi_cyclic else bits


def local_gauss(instance, share=None):
    return few_samples(instance, local_unknowns(instance, share), row_weight(instance), most=0)


def local_isd(instance, share=None):
    return few_samples(instance, local_unknowns(instance, share), row_weight(instance))


def local_unknowns(instance, share):
    return max(2, int((share or chosen_share(instance)) * instance.dimension))


def local_hybrid(instance):
    """Regular noise on the rows that chosen columns leave, of all blocks or of a part of them. The attacker
    holds g rows to be free of noise; what is left of each block gives products of two rows, and as soon as
    these are as many as monomials in the unknowns that are left, it is done. Charged are the parity checks
    and one reading of the products, so this is less than any way to solve them. Between the chosen share and
    1 the number of rows is taken as a power of the share."""
    if not instance.regular or instance.locality is None:
        return INFEASIBLE
    n, k, t = instance.samples, instance.dimension, instance.weight
    best = INFEASIBLE
    part = 1.0
    while part * n / k > 1.25 and part * t >= 1:
        samples, blocks = part * n, part * t
        least = chosen_share(replace(instance, samples=int(samples), weight=int(blocks)))
        power = math.log(samples / (least * k)) / -math.log(least)
        for step in range(17):
            share = least + (1 - least) * step / 16
            unknowns, rows = share * k, samples * share**power

            def cost(guessed):
                free = unknowns - guessed
                products = (rows - guessed) ** 2 / (2 * blocks)
                if guessed >= rows or free * free / 2 + free > max(products, 1):
                    return INFEASIBLE
                success = blocks * math.log2(1 - guessed / samples)
                once = checks_cost(unknowns, 1, instance.locality) - math.log2(instance.instances)
                return log2_sum(once, 4 * log2_positive(free) - 2, 1 + math.log2(unknowns)) - success

            last = int(unknowns)
            first = first_true(lambda guessed: cost(guessed) < INFEASIBLE, 0, last)
            if first is not None:
                best = min(best, minimise(cost, first, last)[0])
        part /= 2
    return best


def interleaved(instance, share=None):
    """Noise values of m bits under a binary code are m words with the same noisy positions.

    Each of the 2^m − 1 sums of these words is an instance whose noise keeps half of the positions, and all of
    them share the matrix. And with w noisy positions among the samples held to be free of noise, the parity
    checks of the m words are dependent whenever the w values span less than m dimensions, which linear
    algebra sees for all sums at once; w < m always do."""
    q, m, t = instance.field, instance.degree, instance.weight
    keeps = q / (2 * (q - 1))
    # An attacker who has more words than noise uses some of them.
    m = min(m, t + 1)
    words = 2 ** min(m, 1000) - 1
    share = share or chosen_share(instance)
    systems = [(instance.dimension, None)]
    if share is not None:
        systems.append((local_unknowns(instance, share), row_weight(instance)))
    best = INFEASIBLE
    vanishes = math.log2((q / 2 - 1) / (q - 1)) if m < 1000 else -1.0
    for unknowns, weight in systems:
        best = min(best, few_samples(instance, unknowns, weight, 24, keeps, words * instance.instances))
        inside = unknowns / instance.samples
        by_hits = []
        for hits in range(t + 1):
            chance = log2_binomial(t, hits) + hits * math.log2(inside) + (t - hits) * math.log2(1 - inside)
            by_hits.append(chance + (0 if hits < m else min(0.0, m + hits * vanishes)))
        shared = checks_cost(unknowns, m + 8, weight) - math.log2(instance.instances)
        work = log2_sum(shared, math.log2(m * unknowns))
        best = min(best, work - min(0.0, log2_sum(*by_hits)))
    return best


ANYWHERE = {
    "gauss": gauss,
    "sd": statistical_decoding,
    "sd2": statistical_decoding_2,
    "sd-isd": cache(sd_isd),
    "bjmm": cache(bjmm),
}
REGULAR = {
    "perm": regular_permutation,
    "enum": cache(regular_enumeration),
    "repr": cache(regular_representation),
    "agb": cache(agb),
    "agb2": cache(agb2),
    "hybrid": cache(hybrid),
}
LOCAL = {
    "local-gauss": local_gauss,
    "local-isd": local_isd,
    "local-hybrid": local_hybrid,
}
NAMES = [*ANYWHERE, *REGULAR, "linear-test", "pooled-isd", *LOCAL, "interleaved"]


def estimate(instance):
    """log2 cost by attack; an attack that does not apply is left out."""
    binary = instance.projected()
    n, k, t = binary.samples, binary.dimension, binary.weight
    known = t if binary.regular else 0
    out = {}
    if k > known:
        out.update({name: attack(n - known, k - known, t) for name, attack in ANYWHERE.items()})
    if binary.regular:
        out.update({name: attack(n, k, t) for name, attack in REGULAR.items()})
    out["pooled-isd"] = pooled_isd(binary)
    if instance.quasi_cyclic:
        out = {name: bits - math.log2(n) / 2 for name, bits in out.items()}
    if instance.distance is not None:
        out["linear-test"] = linear_test(instance)
    if chosen_share(instance) is not None:
        out.update({name: attack(binary) for name, attack in LOCAL.items()})
    if instance.degree > 1:
        out["interleaved"] = interleaved(instance)
    return {name: bits for name, bits in out.items() if bits < INFEASIBLE}


def security(costs):
    """(bits, attack) of the cheapest attack."""
    attack = min(costs, key=costs.get)
    return costs[attack], attack


def bound(instance):
    """log2 cost of the local attacks with the least share of columns that can exist; None where there is no
    choice."""
    share = least_share(instance)
    if share is None:
        return None
    return interleaved(instance, share) if instance.degree > 1 else local_isd(instance, share)


# The command.

# What docs/lpn-security.md compares with: sets of the literature, of the Ferret paper, of other libraries and
# of earlier releases, with bits expected by attack; `published` is the least of the attacks that take the
# matrix as random and all samples at once, for which there are figures elsewhere.
def _local(name, samples, dimension, weight, regular=True, instances=1):
    return Instance(name, samples, dimension, weight, regular, locality=10, instances=instances, paper=True)


def _dual(name, outputs, weight, **code):
    return Instance(name, 2 * outputs, outputs, weight, paper=True, **code)


REFERENCE = [
    (_local("A before", 10_649_600, 1 << 19, 1300, instances=4), {"published": 138}),
    (_local("B before", 1_138_688, 1 << 17, 556, instances=4), {"published": 134}),
    (_local("C before", 614_400, 1 << 16, 600, instances=4), {"published": 129}),
    (
        _local("D before", 768_000, 1 << 15, 3000, instances=4),
        {"published": 159, "hybrid": 161, "agb2": 159, "bjmm": 198, "sd-isd": 202},
    ),
    (
        _local("E before", 256_000, 1 << 14, 2000, instances=4),
        {"published": 162, "hybrid": 164, "agb2": 162, "bjmm": 190, "sd-isd": 194},
    ),
    (_local("Ferret-Reg main", 10_805_248, 589_760, 1319), {"published": 150}),
    (_local("Ferret-Reg setup", 609_728, 36_288, 1269), {"published": 127}),
    (_local("Ferret-Reg setup, k raised", 609_728, 37_888, 1269), {"published": 131}),
    (_local("Ferret-Uni main", 10_616_092, 588_160, 1324, False), {"published": 154}),
    (_local("Ferret-Uni setup", 616_092, 37_248, 1254, False), {"published": 143}),
    (_local("Ferret-Uni a before", 2_795_520, 1 << 18, 680, False, 4), {}),
    (_local("Ferret-Uni b before", 1_397_760, 1 << 17, 680, False, 4), {}),
    (_local("emp-ot b13 main", 10_485_760, 452_000, 1280), {}),
    (_local("emp-ot b13 setup", 470_016, 32_768, 918), {}),
    # emp-ot 1.0 alpha (2026-07) and mpz v2 (2026-06).
    (_local("emp-ot 1.0 alpha, mpz v2: k = 2^19", 15_564_800, 1 << 19, 1900), {"published": 128}),
    (_local("emp-ot 1.0 alpha, mpz v2: k = 2^18", 6_225_920, 1 << 18, 1520), {"published": 128}),
    (_local("emp-ot 1.0 alpha, mpz v2: k = 2^17", 2_396_160, 1 << 17, 1170), {"published": 128}),
    (_local("emp-ot 1.0 alpha, mpz v2: k = 2^16", 870_400, 1 << 16, 850), {"published": 128}),
    (_dual("dual quasi-cyclic, n = 10^4", 10_000, 128, quasi_cyclic=True), {"bjmm": 136}),
    (_dual("dual quasi-cyclic, n = 10^7", 10_000_000, 128, quasi_cyclic=True), {}),
    (_dual("dual linear, n = 10^4", 10_000, 176, distance=0.20, accumulate=32), {}),
    (_dual("dual linear, n = 10^7", 10_000_000, 176, distance=0.20, accumulate=32), {}),
    *(
        (_dual(f"values of {m} bits", 54_272, 424, distance=0.20, accumulate=32, field=1 << m), {})
        for m in (8, 16, 32, 64, 128)
    ),
]


def report(instance):
    """The result of one set, as it goes into JSON."""
    costs = estimate(instance)
    bits, attack = security(costs)
    local = {key: getattr(instance, key) for key in ("locality", "accumulate")}
    extra = {key: value for key, value in local.items() if value is not None}
    if instance.instances > 1:
        extra["instances"] = instance.instances
    if instance.paper:
        extra["paper"] = True
    if (least := bound(instance)) is not None:
        extra["bound"] = round(least, 2)
    return {
        "name": instance.name,
        "N": instance.samples,
        "k": instance.dimension,
        "t": instance.weight,
        "noise": "regular" if instance.regular else "uniform",
        "security": round(bits, 2),
        "attack": attack,
        "quantum": round(quantum(instance), 2),
        **extra,
        "costs": {name: round(cost, 2) for name, cost in costs.items()},
    }


def weakness(result, minimum):
    """What is wrong with a set that must have `minimum` bits, None if nothing is."""
    if result.get("paper"):
        return None
    if result["security"] < minimum:
        return f"{result['name']} has {result['security']} bits against {result['attack']}"
    if result.get("bound", minimum) < minimum:
        return f"{result['name']} has {result['bound']} bits against the best choice of columns there can be"
    return None


def table(reports):
    """The results as a table in Markdown."""
    columns = [name for name in NAMES if any(name in r["costs"] for r in reports)]
    bounds = ["bound"] if any("bound" in r for r in reports) else []
    rows = [["set", "N", "k", "t", "noise", "security", "quantum", *bounds, *columns]]
    rows.append(["---"] * len(rows[0]))
    for r in reports:
        cells = [r["name"], f"{r['N']:,}", f"{r['k']:,}", f"{r['t']:,}", r["noise"]]
        cells.append(f"{r['security']:.1f} ({r['attack']})")
        cells.append(f"{r['quantum']:.1f}")
        cells += [f"{r[name]:.1f}" if name in r else "" for name in bounds]
        cells += [f"{r['costs'][name]:.1f}" if name in r["costs"] else "" for name in columns]
        rows.append(cells)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def load(path):
    """The sets of a JSON file, or of standard input."""
    text = sys.stdin.read() if path == "-" else open(path, encoding="utf-8").read()
    sets = json.loads(text)
    if not isinstance(sets, list) or not sets:
        raise ValueError("a list of at least one set is wanted")
    return [parse_set(entry) for entry in sets]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", metavar="N K T", type=int, nargs="*")
    parser.add_argument("--uniform", action="store_true")
    parser.add_argument("--locality", metavar="ONES", type=int)
    parser.add_argument("--instances", metavar="COUNT", type=int, default=1)
    parser.add_argument("--peel", action="store_true")
    parser.add_argument("--peel-product", metavar="OUTPUTS", type=int, nargs="+")
    parser.add_argument("--seeds", metavar="COUNT", type=int, default=4)
    parser.add_argument("--sets", metavar="FILE")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--minimum", type=float, metavar="BITS")
    options = parser.parse_args(arguments)
    asked = [options.numbers, options.sets is not None, options.reference, options.peel, options.peel_product]
    if sum(map(bool, asked)) != 1:
        parser.error("give N K T, or --sets FILE, or --reference, or --peel, or --peel-product")
    if options.peel_product:
        if any(outputs < 64 or outputs % 32 for outputs in options.peel_product):
            parser.error("--peel-product takes multiples of 32")
        peel_product(options.peel_product, options.seeds)
        return 0
    if options.peel:
        peel_again()
        return 0
    try:
        if options.reference:
            instances = [instance for instance, _ in REFERENCE]
        elif options.sets is not None:
            instances = load(options.sets)
        elif len(options.numbers) == 3:
            n, k, t = options.numbers
            local = {"locality": options.locality, "instances": options.instances}
            instances = [Instance(f"({n}, {k}, {t})", n, k, t, not options.uniform, **local)]
        else:
            parser.error("N, K and T are wanted")
    except (OSError, ValueError, TypeError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    reports = [report(instance) for instance in instances]
    print(json.dumps(reports, indent=2) if options.json else table(reports))
    weak = [fault for r in reports if options.minimum is not None and (fault := weakness(r, options.minimum))]
    for fault in weak:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main())
