"""The checks of single-point correlated OT, Ferret's by levels and the others' by leaves, at tiny sizes.

*What is modelled.* One tree as the library makes it (`silent/tree`): half-trees, in which every level XORs to Δ, with
one correction a level from the second on; and GGM trees, with two sums a level. The sender knows the whole tree and
chooses its corrections, any field elements. The receiver's point α is uniform; it expands by what came. Then its weights
are drawn and shown, and the sender claims one value for their combination: it passes if the receiver's is that, which
is the page's comparison of digests, once the receiver's own secret part φ·Δ is on the sender's side.

The field is GF(2^bits), the hash a fixed random function, and *every* correction is tried. With H as it is drawn here
the game has no chance nodes but α and the weights, and its value is a number: M, how often the best claim passes.

*The page* (All points of a batch together). A class are the points with the same virtual leaves, p the likeliest's
chance: M − p ≤ √(pairs' chance to agree), 1/√F by levels and √((depth + 3)/F) by leaves; and points outside of the
likeliest class that passes are there as rarely. Two classes agree in their combination with 1/F, or (depth + 3)/F.

`Batch` is several trees with one claim for all, by levels. `Anchor` is what ties the trees of silent OT's short form to
KOS' Δ: a sender whose trees have another Δ must name Σ x_i·ρ_i·e_i for bits x that it does not know, elements e that are
not zero, and ρ that it sees before it answers. The page: 2^-127 on average over GF(2^128), exactly (2 − 1/F)/F.

*What is left out.* The 128 masking correlations, that make what the receiver opens uniform; LPN behind it. The page's
argument is about pairs of classes, of which a tree has some already, and the field's size is a parameter.
"""

import random
from fractions import Fraction
from itertools import combinations, product
from math import isqrt

from games import solve, uniform
from small_sets import Field


def root(numerator, bits):
    """√(numerator / 2^bits), rounded up to a fraction."""
    scale = 2**40
    return Fraction(isqrt(numerator * scale * scale // 2**bits) + 1, scale)


class Tree:
    """A punctured tree of some depth, by the parity of all its levels known to the sender."""

    def __init__(self, bits, depth, ggm=False, seed=1):
        self.field, self.depth, self.ggm = Field(bits), depth, ggm
        rng = random.Random(seed)
        self.hash = [[rng.randrange(2**bits) for _ in range(2**bits)] for _ in range(2)]
        self.delta = rng.randrange(2**bits) | 1
        first = rng.randrange(2**bits)
        self.root = [first, rng.randrange(2**bits) if ggm else first ^ self.delta]

    def children(self, node):
        left = self.hash[0][node]
        return [left, self.hash[1][node] if self.ggm else node ^ left]

    def corrections(self):
        """Every choice of the errors in the corrections: one of all levels but the first, or two of each level."""
        levels = range(2, self.depth + 1)
        each = [2] * (self.depth - 1) if self.ggm else [1] * (self.depth - 1)
        for errors in product(range(self.field.size), repeat=sum(each)):
            yield dict(zip(levels, [errors[2 * i : 2 * i + 2] if self.ggm else errors[i : i + 1] for i in range(self.depth - 1)]))

    def honest(self):
        levels = [self.root]
        for _ in range(1, self.depth):
            nodes = levels[-1]
            pairs = [self.children(node) for node in nodes]
            # Left children first, then the right ones: node i's are i and i + n.
            levels.append([pair[0] for pair in pairs] + [pair[1] for pair in pairs])
        return levels

    def virtual(self, alpha, errors):
        """The virtual levels of a receiver with point `alpha`: what it has, and for its path what makes each level
        right. Bit m of α says whether the path goes right at level m + 1."""
        true = self.honest()
        levels = [list(true[0])]
        for m in range(2, self.depth + 1):
            n = 2 ** (m - 1)
            path = alpha & (n - 1)
            nodes = levels[-1]
            sums = self.sums(true[m - 1], n, errors[m])
            pairs = [self.children(node) for node in nodes]
            pairs[path] = [0, 0]
            for side in (0, 1):
                for i, pair in enumerate(pairs):
                    if i != path:
                        sums[side] ^= pair[side]
            pairs[path] = sums
            levels.append([pair[0] for pair in pairs] + [pair[1] for pair in pairs])
        return levels

    def sums(self, level, n, errors):
        """What the left and the right children XOR to, as the receiver is told."""
        left = right = 0
        for node in level[:n]:
            left ^= node
        for node in level[n:]:
            right ^= node
        if self.ggm:
            return [left ^ errors[0], right ^ errors[1]]
        # The one sum that is sent gives the other, as both XOR to Δ.
        return [left ^ errors[0], left ^ errors[0] ^ self.delta]

    def moments(self, levels):
        """Σ (n + i)·left child of node i, of each level from the second on."""
        found = []
        for level in levels[1:]:
            n = len(level) // 2
            total = 0
            for i in range(n):
                total ^= self.field.products[(n + i) % self.field.size][level[i]]
            found.append(total)
        return found

    def by_leaves(self, weights, leaves):
        total = 0
        for weight, leaf in zip(weights, leaves):
            total ^= self.field.products[weight][leaf]
        return total


class Check:
    """A check of one tree; `weigh` are its random combinations, as functions of the virtual levels."""

    def __init__(self, tree, by_levels, known=False, last_only=False, alike=False):
        self.tree, self.known, self.last_only = tree, known, last_only
        self.by_levels = by_levels
        field = tree.field
        if alike:
            self.draws = [[1] * 2**tree.depth]
        elif by_levels:
            self.draws = list(product(range(field.size), repeat=1 if last_only else tree.depth - 1))
        else:
            self.draws = [self.monomials(variables) for variables in product(range(field.size), repeat=tree.depth + 1)]

    def monomials(self, variables):
        """The weights of leaves: products of the variables of their bits, times one for the tile."""
        *variables, tile = variables
        weights = [tile]
        for variable in variables:
            weights += [self.tree.field.products[variable][weight] for weight in weights]
        return weights

    def claims(self, levels):
        """The receiver's combination for each draw of the weights."""
        tree = self.tree
        if not self.by_levels:
            return [tree.by_leaves(weights, levels[-1]) for weights in self.draws]
        moments = tree.moments(levels)[-1:] if self.last_only else tree.moments(levels)
        return [tree.by_leaves(weights, moments) for weights in self.draws]

    def solve(self):
        """Of all corrections: the most by which M exceeds p; the largest chance of points beyond the likeliest
        class that passes; and the most often that two classes agree."""
        points = range(2**self.tree.depth)
        excess = outside = agree = Fraction(0)
        known = {}
        for errors in self.tree.corrections():
            virtual = [self.tree.virtual(alpha, errors) for alpha in points]
            classes = {}
            for levels in virtual:
                leaves = tuple(levels[-1])
                classes.setdefault(leaves, [0, levels])[0] += 1
            weights = [Fraction(count, len(points)) for count, _ in classes.values()]
            # The claims follow from the levels, which the leaves determine up to what all receivers share.
            claims = [self.claims_of(levels, known) for _, levels in classes.values()]
            m = beyond = Fraction(0)
            for i in range(len(self.draws)):
                passing = {}
                for weight, claim in zip(weights, claims):
                    passing.setdefault(claim[i], []).append(weight)
                best = max(sum(some) for some in passing.values())
                m = max(m, best) if self.known else m + best / len(self.draws)
                beyond += max(sum(some) - max(some) for some in passing.values()) / len(self.draws)
            for one, other in combinations(claims, 2):
                same = sum(a == b for a, b in zip(one, other))
                agree = max(agree, Fraction(same, len(self.draws)))
            excess, outside = max(excess, m - max(weights)), max(outside, beyond)
        return excess, outside, agree

    def claims_of(self, levels, known):
        key = tuple(map(tuple, levels))
        if key not in known:
            known[key] = self.claims(levels)
        return known[key]


class Batch:
    """Trees whose levels' moments are weighed together: the most by which M exceeds p, over all corrections."""

    def __init__(self, *trees):
        self.trees, self.field = trees, trees[0].field

    def excess(self):
        each = [Check(tree, True) for tree in self.trees]
        # Of every tree and correction: for each class its chance, and its combination for each draw.
        made = []
        for check in each:
            of_tree = []
            for errors in check.tree.corrections():
                classes = {}
                points = 2**check.tree.depth
                for alpha in range(points):
                    levels = check.tree.virtual(alpha, errors)
                    classes.setdefault(tuple(levels[-1]), [0, levels])[0] += 1
                of_tree.append([(Fraction(count, points), check.claims(levels)) for count, levels in classes.values()])
            made.append(of_tree)
        best = Fraction(0)
        draws = list(product(*(range(len(check.draws)) for check in each)))
        for chosen in product(*made):
            m = Fraction(0)
            for draw in draws:
                passing = {}
                for classes in product(*chosen):
                    weight, claim = Fraction(1), 0
                    for (chance, claims), at in zip(classes, draw):
                        weight, claim = weight * chance, claim ^ claims[at]
                    passing[claim] = passing.get(claim, 0) + weight
                m += max(passing.values()) / len(draws)
            likeliest = Fraction(1)
            for classes in chosen:
                likeliest *= max(chance for chance, _ in classes)
            best = max(best, m - likeliest)
        return best


class Anchor:
    """A sender that names a sum of unknown bits times weights, of `bits` correlations over GF(2^bits). `seen` is whether
    the weights are shown to it before it chooses its elements, which `e` then are."""

    def __init__(self, bits, seen=False):
        self.field, self.bits, self.seen = Field(bits), bits, seen

    def states(self):
        weights = product(range(self.field.size), repeat=self.bits)
        return uniform(product(product((0, 1), repeat=self.bits), list(weights)))

    def choices(self, history):
        if len(history) == 0:
            return [None] if self.seen else [(1,) * self.bits]
        if len(history) == 1:
            return product(range(1, self.field.size), repeat=self.bits) if self.seen else range(self.field.size)
        return range(self.field.size) if self.seen and len(history) == 2 else []

    def answer(self, state, history, choice):
        return state[1] if not history else None

    def score(self, state, history):
        elements = history[1][0] if self.seen else history[0][0]
        total = 0
        for bit, weight, element in zip(state[0], state[1], elements):
            total ^= self.field.products[weight][element] if bit else 0
        return int(history[-1][0] == total)


CHECKS = [
    ("Ferret's level check", Tree(4, 2), True, 4, 2),
    ("Ferret's level check", Tree(3, 3), True, 3, 3),
    ("leaf check, half-trees", Tree(4, 2), False, 4, 2),
    ("leaf check, half-trees", Tree(2, 3), False, 2, 3),
    ("leaf check, GGM trees", Tree(3, 2, ggm=True), False, 3, 2),
]


def cases():
    for name, tree, by_levels, bits, depth in CHECKS:
        excess, outside, agree = Check(tree, by_levels).solve()
        pair = 1 if by_levels else depth + 3
        size = f"depth {depth}, GF(2^{bits})"
        most = min(Fraction(1), root(pair, bits))
        yield f"{name}: passing beyond p", size, excess, "≤", most
        yield f"{name}: points outside the class", size, outside, "≤", most
        relation = "=" if by_levels else "≤"
        yield f"{name}: two classes agree", size, agree, relation, min(Fraction(1), Fraction(pair, 2**bits))
    value = Batch(Tree(3, 2), Tree(3, 2, seed=2)).excess()
    yield "Ferret's level check: two trees, passing beyond p", "depth 2, GF(2^3)", value, "≤", root(1, 3)
    for bits in (2, 3):
        size, value = 2**bits, solve(Anchor(bits))
        yield "silent's short form: another Δ in the trees", f"GF(2^{bits})", value, "=", Fraction(2 * size - 1, size * size)


def flaws():
    excess = Check(Tree(4, 2), True, known=True).solve()[0]
    yield "Ferret's level check: the weights are known before the corrections", excess, root(1, 4)
    agree = Check(Tree(3, 3), True, last_only=True).solve()[2]
    yield "Ferret's level check: the last level alone", agree, Fraction(1, 2**3)
    agree = Check(Tree(4, 2), False, alike=True).solve()[2]
    yield "leaf check: all leaves weigh the same", agree, Fraction(5, 2**4)
    yield "silent's short form: elements chosen after the weights", solve(Anchor(2, seen=True)), Fraction(7, 16)
