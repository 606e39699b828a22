"""Authenticated garbling beyond the comparison of digests: triples, openings, steps 3 and 4. docs/notes/authenticated.md.

*What is modelled.* Blocks are a few bits, Δ's lowest bit is 1, hashes are random oracles, and correlated OT is its
functionality. In the order of messages:

- `off`: the algebra of leaky triples. Both parties' sums are computed as `leaky.rs` does, for all bits of both and
  random keys, and what a changed G or a wrong d adds to them is what section 5 of the proof says. No game: an identity.
- `Triple`: a garbler that changes G or shows a wrong d, and then pads one digest. It wins if the check passes and it has
  what it went for: a bit x of the evaluator's, or a wrong product.
- `Openings`: bits are shown in batches, both parties' crossing, and then one hash of all MACs. A cheater flips some of
  its own by what it has seen. It wins if a flipped one passes.
- `FalseValues` (step 3): an evaluator that shows a false Λ must hash the label that it does not hold, before it sees the
  hash of step 4, which then would tell a share of the garbler's.
- `FalseTables` (steps 2 to 4): a garbler that makes wrong tables piece by piece, with each piece's Λ seen before the next
  one, and then names the MACs of step 4. It wins if the evaluator goes on with a wrong gate, or by naming its input.
- The comparison in its forms, and windows of buckets, are `alike.py`'s.

*What is left out.* Labels' hashing (half-gates), several sessions, and everything that carries no secret of the other.

*Why the tiny case says something.* What a cheater lacks is a number of bits of one Δ, and the claims are powers of two in
that number, which is a parameter here.
"""

import random
from fractions import Fraction
from itertools import product

from alike import Evaluator, Garbler, Session
from games import many, solve, uniform


def off(width, seed):
    """Whether the parties' sums of one triple differ as the proof says, for all bits, changes of G and flips of d."""
    rng = random.Random(seed)
    size = 2**width
    clear = size - 2
    for bits in product((0, 1), repeat=6):
        xs, ys, zs = bits[0:2], bits[2:4], bits[4:6]
        delta = [rng.randrange(size) | 1 for _ in range(2)]
        # Party p's share has the key K at the other, and so the MAC M = K + share·Δ of the other; keys end in 0.
        keys = [[rng.randrange(size) & clear for _ in range(3)] for _ in range(2)]
        macs = [[keys[p][i] ^ (share[p] * delta[1 - p]) for i, share in enumerate((xs, ys, zs))] for p in range(2)]
        hash_of = [[rng.randrange(size) for _ in range(size)] for _ in range(2)]
        # Of a block under Δ_B, party 1's, the lowest bit is cleared.
        mask = [size - 1, clear]
        messages, sums = [], []
        for p in range(2):
            own, peer = mask[p], mask[1 - p]
            times = lambda i: ((keys[1 - p][i] ^ ((xs, ys, zs)[i][p] * delta[p])) & own) ^ (macs[p][i] & peer)  # noqa: E731
            c, pads = times(1), [hash_of[p][keys[1 - p][0]], hash_of[p][keys[1 - p][0] ^ delta[p]]]
            messages.append(pads[0] ^ pads[1] ^ c)
            sums.append(pads[0] ^ (c * xs[p]) ^ times(2))
        both = (delta[0] & mask[0]) ^ (delta[1] & mask[1])
        for change in range(size):
            sent = [messages[0] ^ change, messages[1]]
            made = [sums[p] ^ hash_of[1 - p][macs[p][0]] ^ (xs[p] * sent[1 - p]) for p in range(2)]
            wrong = (sum(xs) % 2) * (sum(ys) % 2) ^ (sum(zs) % 2)
            if made[0] ^ made[1] != (wrong * both) ^ (xs[1] * change):
                return False
            # With an honest G the lowest bits are d. A flip of it leaves one Δ too many.
            for flip in (0, 1):
                d = wrong ^ flip
                after = [made[p] ^ (d * (delta[p] & mask[p])) for p in range(2)]
                if after[0] ^ after[1] != (flip * both) ^ (xs[1] * change):
                    return False
    return True


class Triple:
    """A garbler at one triple: what it adds to G, whether its d is wrong, and the digest that it pads, as what it
    takes the evaluator's sum to be off by. It wins with `x` by a check that passed and x named, else by a wrong product.
    """

    def __init__(self, width, x):
        self.width, self.x = width, x

    def states(self):
        return uniform(product((0, 1), range(1, 2**self.width, 2)))

    def choices(self, history):
        values = range(2**self.width)
        if not history:
            return product(values, (0, 1))
        if len(history) == 1:
            return values
        return [0, 1] if len(history) == 2 else []

    def answer(self, state, history, choice):
        if len(history) != 1:
            return None
        (change, flip), _ = history[0]
        return choice == (state[0] * change) ^ (flip * state[1])

    def score(self, state, history):
        (change, flip), passed = history[0][0], history[1][1]
        won = change != 0 and history[2][0] == state[0] if self.x else flip
        return int(bool(passed and won))


class Openings:
    """A cheater that shows `batches` bits one after the other, each crossing one of the other party's, and whose MACs are
    hashed, of which `bits` count. It flips by what it saw; then it names Δ, or what it flipped shows.

    `once` is as the library does it: one hash, and a session that failed is spent. Otherwise it may try again as often as
    there are batches, at the same Δ.
    """

    def __init__(self, batches, bits, once=True):
        self.batches, self.bits, self.once = batches, bits, once

    def states(self):
        return uniform(product(product((0, 1), repeat=self.batches), range(1, 2**self.bits, 2)))

    def choices(self, history):
        step = len(history)
        if step < self.batches:
            return [0, 1]
        tries = 1 if self.once else self.batches
        over = step >= self.batches + tries or (step > self.batches and history[-1][1])
        return [] if over else range(1, 2**self.bits, 2)

    def answer(self, state, history, choice):
        if len(history) < self.batches:
            return state[0][len(history)]
        flipped = any(choice for choice, _ in history[: self.batches])
        return not flipped or choice == state[1]

    def score(self, state, history):
        flipped = any(choice for choice, _ in history[: self.batches])
        return int(flipped and history[-1][1])


class FalseValues:
    """An evaluator in step 3. It shows Λ, true or false, of each of `gates` gates; then a hash of labels, for which it
    has to name Δ_A where one was false; then it hears step 4's hash, which of a false Λ tells the garbler's share.

    It wins by naming the share. `order` is the order of the labels' hash and step 4.
    """

    def __init__(self, gates, bits, order="labels first"):
        self.gates, self.bits, self.order = gates, bits, order

    def states(self):
        return uniform(product((0, 1), range(1, 2**self.bits, 2)))

    def choices(self, history):
        step = len(history)
        if step < self.gates:
            return [0, 1]
        if step == self.gates:
            return [None, *range(1, 2**self.bits, 2)]
        return [0, 1] if step == self.gates + 1 else []

    def answer(self, state, history, choice):
        if len(history) != self.gates:
            return None
        false = any(choice for choice, _ in history)
        passes = choice == state[1] if false else choice is None
        if passes or self.order != "labels first":
            return "passed", state[0] if false else None
        return "stopped", None

    def score(self, state, history):
        return int(history[-1][0] == state[0])


class FalseTables:
    """A garbler whose gates all compute y, the evaluator's only bit, and who may make each wrong by what it has seen.

    It sees y + λ; then of each gate, a piece of its own, Λ = value + the evaluator's share of the mask; then it names MACs,
    for which it lacks Δ_B where a gate was wrong, or leaves; then it sees whether the evaluator goes on. It wins by
    `wrong`, that it goes on with a wrong gate, or by naming y. `masked` is whether results have masks.
    """

    def __init__(self, gates, bits, wrong, masked=True):
        self.gates, self.bits, self.wrong, self.masked = gates, bits, wrong, masked

    def states(self):
        masks = product((0, 1), repeat=self.gates) if self.masked else [(0,) * self.gates]
        return uniform(product((0, 1), (0, 1), list(masks), range(1, 2**self.bits, 2)))

    def choices(self, history):
        step = len(history)
        if step == 0:
            return [None]
        if step <= self.gates:
            return [0, 1]
        if step == self.gates + 1:
            return ["leave", "as it is", *range(1, 2**self.bits, 2)]
        return [0, 1] if step == self.gates + 2 else []

    def answer(self, state, history, choice):
        y, mask, shares, delta = state
        step = len(history)
        if step == 0:
            return y ^ mask
        if step <= self.gates:
            return y ^ shares[step - 1] ^ choice
        if step == self.gates + 1:
            bent = any(choice for choice, _ in history[1:])
            return choice == delta if bent else choice == "as it is"
        return None

    def score(self, state, history):
        bent = any(choice for choice, _ in history[1 : self.gates + 1])
        goes_on = history[self.gates + 1][1]
        return int(bent and goes_on) if self.wrong else int(history[-1][0] == state[0])


def guesses(digest, bits):
    secrets = list(product((0, 1), repeat=digest))[: 2**bits]
    return secrets, lambda secret, delta: secret


FORMS = {"v7": "as version 7", "swapped": "the proofs exchanged", "both": "a proof of both parties' pads", "shipped": "as shipped"}


def comparisons():
    """The page's sections 3, 4 and 8: what a guess of two bits is worth in each form, to either party."""
    half = Fraction(1, 4)
    for form, words in FORMS.items():
        blind = Fraction(1, 4 * 4) if form in ("both", "shipped") else 0
        value = solve(Garbler(form, 2, 3, *guesses(2, 2)))
        yield f"digests, {words}: garbler", "2 bits guessed, Δ of 3 bits", value, half * (2 if form == "v7" else 1) + blind
        value = solve(Evaluator(form, 2, guesses(2, 2)[0]))
        yield f"digests, {words}: evaluator", "2 bits guessed", value, half * (2 if form == "swapped" else 1)


def window(buckets, rows):
    return Fraction(1, 2**rows * buckets ** (rows - 1))


def cases():
    for name, size, value, bound in comparisons():
        # The other two forms are what the page says of them: they have the bound that makes them unfit.
        yield name, size, value, "=", bound
    for width in (2, 3, 4):
        yield "triples: a wrong product", f"messages of {width} bits", solve(Triple(width, False)), "=", Fraction(1, 2 ** (width - 1))
    yield "triples: a bit x", "messages of 3 bits", solve(Triple(3, True)), "=", Fraction(1, 2)
    for buckets, checks in [(2, [2]), (3, [2]), (2, [2, 1])]:
        size = f"{buckets} buckets of {sum(checks)}, {many(len(checks), 'check')}"
        yield "buckets: a window", size, solve(Session("shipped", buckets, checks)), "=", window(buckets, sum(checks))
    for checks in ([2], [1, 1]):
        most = window(2, sum(checks)) / (1 - Fraction(1, 2 ** checks[0]))
        value = solve(Session("shipped", 2, checks, 2))
        yield "buckets: all of a session's windows", f"2 windows of 2 buckets, checks of {checks}", value, "≤", most
    for batches, bits in [(1, 3), (3, 3), (2, 4)]:
        value = solve(Openings(batches, bits))
        yield "openings: a flipped bit", f"{many(batches, 'batch')}, {bits} bits of a MAC", value, "=", Fraction(1, 2 ** (bits - 1))
    for gates, bits in [(1, 3), (2, 3)]:
        bound = Fraction(1, 2) + Fraction(1, 2) * Fraction(1, 2 ** (bits - 1))
        value = solve(FalseValues(gates, bits))
        yield "step 3: a share named", f"{many(gates, 'gate')}, {bits} bits of a label", value, "=", bound
    for gates, bits in [(1, 3), (2, 3)]:
        value = solve(FalseTables(gates, bits, True))
        yield "step 4: a wrong gate", f"{many(gates, 'gate')}, {bits} bits of a MAC", value, "=", Fraction(1, 2 ** (bits - 1))
        value = solve(FalseTables(gates, bits, False))
        yield "steps 2 to 4: the input named", f"{many(gates, 'gate')}, {bits} bits of a MAC", value, "=", Fraction(1, 2)


def flaws():
    yield "digests as in version 7: a second guess", solve(Garbler("v7", 2, 3, *guesses(2, 2))), Fraction(1, 4) + Fraction(1, 16)
    yield "digests, proofs exchanged: a second guess", solve(Evaluator("swapped", 2, guesses(2, 2)[0])), Fraction(1, 4)
    yield "buckets: a window in version 7", solve(Session("v7", 2, [2])), window(2, 2)
    yield "openings: a session that failed goes on", solve(Openings(2, 3, once=False)), Fraction(1, 4)
    yield "step 3: its hash after step 4", solve(FalseValues(1, 3, order="labels last")), Fraction(5, 8)
    yield "steps 2 to 4: results without masks", solve(FalseTables(1, 3, False, masked=False)), Fraction(1, 2)
