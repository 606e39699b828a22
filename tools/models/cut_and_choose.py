"""WMK17: cut-and-choose with input recovery, and the encoding of the evaluator's input. docs/notes/wmk17.md.

*What is modelled.* P1 makes n copies, of which P2 evaluates k. In the order of messages: P2's set is fixed by the
choices of step 1; P1 sends and commits to everything, each copy as it likes (`KINDS`); P2 evaluates and compares
outputs (step 6), asks for the recovery (step 7), takes the input of a P1 that two copies convict (step 8), and fails at
the end, if a check copy is not as it should be or nothing explains the outputs (step 9). P1 sees at most that it failed.

- `Copies`: P1 wins if P2 takes a wrong output, or by what the failure tells of y, a bit on which a copy's fault may
  depend: half the difference of its chances for y = 0 and y = 1, which is how far it is from a failure that does not
  depend on y. Page: 1/C(n, k) for either.
- `Probe`: P1 sends wrong labels for some values of bits of the encoding, in all copies, so that P2 fails where it holds
  one. Page: 2^-ρ from a failure that does not depend on the input.
- `Joint`: both in one strategy. P1 exchanges labels of encoded bits in some copies only. With C = C(n, k) and a lightest
  sum of rows of weight d, the page has 1/C + (1 − 1/C)·2^-(d−1) between the real run and a simulator that takes y = 0,
  and 1/C + (1 − 1/C)·2^-d for the best simulator. A wrong output alone keeps 1/C.

*What is left out.* Commitments and the group of step 7 are ideal; a wrong opening is a wrong copy. The coded transfer
is the variant in which a copy that misses its hash counts as invalid.

*Why the tiny case says something.* A copy's kind is all that P2 looks at, and it looks at copies one by one; C(n, k) and
ρ are parameters.
"""

from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import comb

from games import many
from small_sets import Field

# What an evaluated copy gives for y = 0 and for y = 1: the right output, another one, or an invalid one; and whether its
# seed is recovered.
OUTPUTS = list(product("ro-", repeat=2))
GOOD = (("r", "r"), True)
KINDS = [(outputs, recovers) for outputs in OUTPUTS for recovers in (True, False)]


class Copies:
    """n copies of which k are evaluated. `recovery` is whether P2 takes the input of a P1 that two copies convict, or
    else believes the first of them."""

    def __init__(self, n, k, recovery=True):
        self.n, self.sets, self.recovery = n, list(combinations(range(n), k)), recovery

    def outcome(self, kinds, evaluated, y):
        """What P2 ends with: right, wrong, or a failure."""
        if any(kinds[j] != GOOD for j in range(self.n) if j not in evaluated):
            return "fails"
        given = {kinds[j][0][y] for j in evaluated} - {"-"}
        if given == {"r", "o"}:
            if not self.recovery:
                return "wrong"
            # P1's input, by a copy whose seed was recovered: then P2 computes f itself.
            return "right" if any(kinds[j][1] for j in evaluated) else "fails"
        return {"r": "right", "o": "wrong"}.get("".join(given), "fails")

    def choices(self):
        """What P1 may make of its copies, in any order: every set is as likely."""
        return combinations_with_replacement(KINDS, self.n)

    def wrong(self):
        return max(self.share(kinds, "wrong", y) for kinds in self.choices() for y in (0, 1))

    def told_by_failure(self):
        return max(
            abs(self.share(kinds, "fails", 0) - self.share(kinds, "fails", 1)) / 2 for kinds in self.choices()
        )

    def share(self, kinds, what, y):
        return Fraction(sum(self.outcome(kinds, some, y) == what for some in self.sets), len(self.sets))

    def wrong_where_told(self):
        """P1 learns the set while it can still choose, as where P2 opens its copies as they come."""
        won = 0
        for evaluated in self.sets:
            kinds = product((GOOD, (("o", "o"), True)), repeat=self.n)
            won += any(self.outcome(some, evaluated, 0) == "wrong" for some in kinds)
        return Fraction(won, len(self.sets))


def coins(n):
    """A coin a copy, and P1 sees by P2's work how many are evaluated before it chooses."""
    return sum(Fraction(comb(n, k), 2**n) * Copies(n, k).wrong() for k in range(1, n + 1))


class Coded:
    """Tables sent as k combinations of n copies', to which P1 adds an error; P2 makes the check copies itself and solves
    for the others. Hashes are of what P1 garbled. A copy that is not as its hash says is a failed check, or `invalid`."""

    def __init__(self, bits, n, k, invalid):
        self.field, self.n, self.k, self.invalid = Field(bits), n, k, invalid
        self.sets = list(combinations(range(n), k))

    def powers(self, copy):
        value, powers = 1, []
        for _ in range(self.k):
            powers.append(value)
            value = self.field.products[value][copy]
        return powers

    def off(self, evaluated):
        """Every error in the evaluated copies, by the error in the combinations that makes it."""
        times, columns = self.field.products, [self.powers(copy) for copy in evaluated]
        found = {}
        for errors in product(range(self.field.size), repeat=self.k):
            sums = [0] * self.k
            for error, column in zip(errors, columns):
                sums = [total ^ times[error][power] for total, power in zip(sums, column)]
            found[tuple(sums)] = errors
        return found

    def value(self):
        by_set = [self.off(evaluated) for evaluated in self.sets]
        best = Fraction(0)
        for error in product(range(self.field.size), repeat=self.k):
            for bad in product((False, True), repeat=self.n):
                won = 0
                for evaluated, errors in zip(self.sets, by_set):
                    checked_bad = sum(bad) > sum(bad[j] for j in evaluated)
                    as_hashed = [j for j, off in zip(evaluated, errors[error]) if off == 0]
                    if checked_bad or (len(as_hashed) < self.k and not self.invalid):
                        continue
                    won += bool(as_hashed) and all(bad[j] for j in as_hashed)
                best = max(best, Fraction(won, len(self.sets)))
        return best


class Probe:
    """The encoding of an input by rows [M | I]: y = M·a + b of random (a, b). P1 spoils labels of values of encoded
    bits; P2 fails where it holds a spoilt one."""

    def __init__(self, matrix):
        self.rows = [tuple(row) + tuple(int(i == r) for i in range(len(matrix))) for r, row in enumerate(matrix)]
        self.length = len(self.rows[0])
        self.encodings = {}
        for word in product((0, 1), repeat=self.length):
            y = tuple(sum(a & b for a, b in zip(row, word)) % 2 for row in self.rows)
            self.encodings.setdefault(y, []).append(word)

    def least(self):
        """ρ: the least weight of a sum of rows."""
        sums = []
        for picks in product((0, 1), repeat=len(self.rows)):
            if any(picks):
                total = [sum(pick & row[i] for pick, row in zip(picks, self.rows)) % 2 for i in range(self.length)]
                sums.append(sum(total))
        return min(sums)

    def value(self):
        best = Fraction(0)
        for spoilt in product(((), (0,), (1,), (0, 1)), repeat=self.length):
            fine = []
            for words in self.encodings.values():
                held = sum(all(bit not in bad for bit, bad in zip(word, spoilt)) for word in words)
                fine.append(Fraction(held, len(words)))
            best = max(best, (max(fine) - min(fine)) / 2)
        return best


class Joint:
    """n copies of which k are evaluated, and an input of one bit, the sum of `weight` encoded bits. P1 settles for each
    copy and encoded bit which of the two labels it exchanges for the other. P2 fails if a checked copy has a wrong label
    among those that it holds. If not, evaluated copies that agree are believed; others give P1's input."""

    def __init__(self, n, k, weight):
        self.n, self.weight = n, weight
        self.sets = [(some, [j for j in range(n) if j not in some]) for some in combinations(range(n), k)]
        words = list(product((0, 1), repeat=weight))
        self.encodings = [[word for word in words if sum(word) % 2 == y] for y in (0, 1)]
        # What a copy's exchanged labels do to an encoding: whether P2 holds one, and whether the sum is another one.
        self.effects = []
        for labels in product(range(4), repeat=weight):
            wrong = {word: [swapped >> bit & 1 for swapped, bit in zip(labels, word)] for word in words}
            self.effects.append({word: (any(off), sum(off) % 2 == 1) for word, off in wrong.items()})

    def outcomes(self, copies, y):
        """The chances that P2 fails, has the right output, and has a wrong one."""
        fails = wrong = 0
        for word in self.encodings[y]:
            held, off = zip(*(copy[word] for copy in copies))
            for evaluated, checked in self.sets:
                if any(held[j] for j in checked):
                    fails += 1
                else:
                    wrong += all(off[j] for j in evaluated)
        total = len(self.encodings[y]) * len(self.sets)
        return Fraction(fails, total), Fraction(total - fails - wrong, total), Fraction(wrong, total)

    @staticmethod
    def apart(outcomes, fails):
        """How far these chances are from a P2 that fails with chance `fails` and else has the right output."""
        return (abs(outcomes[0] - fails) + abs(outcomes[1] - (1 - fails)) + outcomes[2]) / 2

    def values(self):
        """The best P1 against the simulator that takes y = 0, against the best simulator, and for a wrong output."""
        by_zero = by_best = by_wrong = Fraction(0)
        for copies in combinations_with_replacement(self.effects, self.n):
            ends = [self.outcomes(copies, y) for y in (0, 1)]
            # The distance is linear between these.
            turns = [ends[0][0], ends[1][0], (ends[0][0] + ends[1][0]) / 2, 1 - ends[0][1], 1 - ends[1][1]]
            farthest = [max(self.apart(end, fails) for end in ends) for fails in turns]
            by_zero, by_best = max(by_zero, farthest[0]), max(by_best, min(farthest))
            by_wrong = max(by_wrong, *(end[2] for end in ends))
        return by_zero, by_best, by_wrong


PROBES = [[[1, 1]], [[1, 1, 1]], [[1, 1, 0], [0, 1, 1]]]


def cases():
    for n, k in [(3, 1), (3, 2), (4, 2), (5, 2)]:
        copies = Copies(n, k)
        yield "WMK17: a wrong output", f"{n} copies, {k} evaluated", copies.wrong(), "=", Fraction(1, comb(n, k))
        value = copies.told_by_failure()
        yield "WMK17: what a failure tells of y", f"{n} copies, {k} evaluated", value, "≤", Fraction(1, comb(n, k))
    value = Coded(3, 5, 3, invalid=False).value()
    yield "WMK17, coded: a wrong output", "5 copies, 3 evaluated, bytes of 3 bits", value, "=", Fraction(1, comb(5, 3))
    for matrix in PROBES:
        probe = Probe(matrix)
        size = f"{many(len(matrix), 'bit')} in {probe.length}, ρ = {probe.least()}"
        yield "WMK17: what wrong labels tell of y", size, probe.value(), "=", Fraction(1, 2 ** probe.least())
    for n, k, weight in [(3, 1, 2), (4, 2, 2), (2, 1, 3)]:
        guess, size = Fraction(1, comb(n, k)), f"{n} copies, {k} evaluated, weight {weight}"
        by_zero, by_best, by_wrong = Joint(n, k, weight).values()
        bound = guess + (1 - guess) / 2 ** (weight - 1)
        yield "WMK17: set and labels together, by the simulator of y = 0", size, by_zero, "=", bound
        bound = guess + (1 - guess) / 2**weight
        yield "WMK17: set and labels together, by the best simulator", size, by_best, "≤", bound
        yield "WMK17: set and labels together, a wrong output", size, by_wrong, "=", guess


def flaws():
    yield "WMK17: without recovery, the first copy counts", Copies(4, 2, recovery=False).wrong(), Fraction(1, 6)
    yield "WMK17: a coin a copy, and their number shows", coins(5), Fraction(1, comb(5, 2))
    yield "WMK17: opened copy by copy", Copies(4, 2).wrong_where_told(), Fraction(1, 6)
    value = Coded(3, 5, 3, invalid=True).value()
    yield "WMK17, coded: a copy that misses its hash is invalid", value, Fraction(1, comb(5, 3))
    yield "WMK17: inputs without an encoding", Probe([[]]).value(), Fraction(1, 8)
    # What the page said up to November 2026: that the larger of the two chances is enough.
    yield "WMK17: set and labels, not added up", Joint(4, 2, 2).values()[1], Fraction(1, 4)
