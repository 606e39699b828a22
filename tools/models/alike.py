"""Authenticated garbling's checks of triples, small enough to be solved: see `docs/proofs/authenticated.md`.

*Comparing two digests by MACs under Δ.* The garbler A pads its digest by bits u of which it holds MACs M = K + u·Δ,
the evaluator B keys K and Δ, an element of a field of characteristic 2 with lowest bit 1. Sums of blocks are sums of
their bits, and M's lowest bit is u. A hash is a random oracle: whoever shows one names the blocks that it is of, and
whoever saw one may ask whether blocks are those, at the price of a query. Forms, by their messages:

    v7        c_A; c_B, p_B; p_A     each proof hashes the MACs of the other's pads, under the prover's keys
    swapped   c_A; c_B; p_A; p_B     the same proofs, A's first
    both      c_A; c_B, p_B; p_A     A's proof hashes the MACs of its own pads as well
    shipped   c_A; p_B; p_A          A's proof hashes the MACs of its own pads alone: version 8

What a cheater does not know of the other's digest is a secret. It wins if the honest party goes on.

*A session's windows.* Triples in rows, each row shifted once its check has passed; a cheater guesses x of some and
wins if all triples of a bucket leaked.
"""

from itertools import product

from games import uniform

FORMS = ["v7", "swapped", "both", "shipped"]


def blocks(base, bits, delta):
    """The blocks `base` with Δ added where the bit is 1."""
    return tuple(block ^ (delta if bit else 0) for block, bit in zip(base, bits))


def added(one, other):
    return tuple(a ^ b for a, b in zip(one, other))


class Garbler:
    """A cheating garbler. `digest_of(secret, delta)` is B's digest; `queries` are made once p_B is seen. Where it is
    not `whole`, A's MACs are zero: they are uniform, and A knows them.
    """

    def __init__(self, form, digest, delta, secrets, digest_of, queries=0, whole=False):
        self.form, self.secrets, self.digest_of = form, list(secrets), digest_of
        self.queries = 0 if form == "swapped" else queries
        self.deltas = range(1, 2**delta, 2)
        self.digests = list(product((0, 1), repeat=digest))
        self.named = list(product(range(2**delta), repeat=digest))
        self.macs = self.named if whole else [(0,) * digest]

    def states(self):
        return uniform(product(self.macs, self.secrets, self.deltas))

    def hashed_by_b(self, state, padded):
        """The blocks that B has for the MACs of what A padded, if its own digest is the same."""
        macs, secret, delta = state
        return blocks(macs, added(padded, self.digest_of(secret, delta)), delta)

    def choices(self, history):
        step = len(history)
        if step == 0:
            return [None]  # its MACs
        if step == 1:
            return self.digests  # the digest that c_A pads, as c_A = digest + u
        if step < 2 + self.queries:
            return self.named  # whether p_B is of these
        if step > 2 + self.queries:
            return []
        # p_A: a digest's, which names the MACs of B's pads; blocks, which name the MACs of the own; or none.
        digests = self.digests if self.form in ("v7", "swapped", "both") else [None]
        return [None, *product(digests, self.named if self.form in ("both", "shipped") else [None])]

    def answer(self, state, history, choice):
        if not history:
            return state[0]
        if len(history) == 1:
            # p_B is known to A without a query if the digest was right. In the swapped order it comes too late.
            return None if self.form == "swapped" else self.hashed_by_b(state, choice) == state[0]
        return choice == self.hashed_by_b(state, history[1][0]) if len(history) < 2 + self.queries else None

    def score(self, state, history):
        padded, proof = history[1][0], history[-1][0]
        if proof is None:
            return 0  # A leaves
        digest, named = proof
        if digest is not None and digest != self.digest_of(*state[1:]):
            return 0
        return int(named is None or named == self.hashed_by_b(state, padded))


class Evaluator:
    """A cheating evaluator. It holds the keys of A's pads, so that to name the MACs is to name a digest. In the
    swapped order A's proof, of the MACs of B's pads under A's keys, tells it whether it padded A's digest.
    """

    def __init__(self, form, digest, secrets):
        self.form, self.secrets = form, list(secrets)
        self.digests = list(product((0, 1), repeat=digest))

    def states(self):
        return uniform(product(self.secrets, self.digests))  # A's digest, and u

    def choices(self, history):
        if not history:
            return [None]  # c_A
        first = 1 if self.form == "swapped" else 0
        if len(history) <= first:
            return self.digests  # the digest that c_B pads
        return [*self.digests, None] if len(history) == first + 1 else []  # p_B's digest; or B leaves

    def answer(self, state, history, choice):
        own, u = state
        return choice == own if history else added(own, u)

    def score(self, state, history):
        return int(history[-1][0] == state[0])


class Session:
    """A cheater that guesses x of triples in `windows` windows of `buckets` buckets; `checks` are the numbers of
    rows of a window that are checked together. In v7 a garbler guesses a second time in each check. `signs` lets it
    choose what it guesses, which changes nothing, as x is uniform.
    """

    def __init__(self, form, buckets, checks, windows=1, signs=False):
        self.form, self.buckets, self.checks, self.windows = form, buckets, checks, windows
        self.rows = sum(checks)
        self.guesses = (None, 0, 1) if signs else (None, 0)

    def states(self):
        triples = self.windows * self.rows * self.buckets
        shifts = product(range(self.buckets), repeat=self.windows * (self.rows - 1))
        return uniform(product(product((0, 1), repeat=triples), list(shifts)))

    def progress(self, history):
        """The checks that are over, each with what went by as guessed; whether one failed; a guess that failed once."""
        over, failed, first = [], False, None
        for choice, right in history:
            if right:
                over.append(choice)
                first = None
            elif self.form == "v7" and first is None:
                first = choice
            else:
                failed = True
        return over, failed, first

    def choices(self, history):
        over, failed, first = self.progress(history)
        if failed or len(over) == self.windows * len(self.checks) or self.full(history):
            return []
        triples = self.checks[len(over) % len(self.checks)] * self.buckets
        if first is None:
            return product(self.guesses, repeat=triples)
        # Other guesses at the same triples, whose messages are sent.
        return product(*(((None,) if guess is None else (0, 1)) for guess in first))

    def answer(self, state, history, choice):
        """False, or the shifts of the rows that passed: A knows them before it proves anything."""
        over, _, _ = self.progress(history)
        window, check = divmod(len(over), len(self.checks))
        row = sum(self.checks[:check])
        at = (window * self.rows + row) * self.buckets
        if any(guess is not None and guess != state[0][at + i] for i, guess in enumerate(choice)):
            return False
        place = window * (self.rows - 1)
        shifts = ((0,) + state[1][place : place + self.rows - 1])[row : row + self.checks[check]]
        return ("passed", *shifts)

    def full(self, history):
        """Whether a bucket of a window that is over leaked."""
        passed = [step for step in history if step[1]]
        for window in range(len(passed) // len(self.checks)):
            of = passed[window * len(self.checks) : (window + 1) * len(self.checks)]
            shifts = [shift for _, answer in of for shift in answer[1:]]
            leaks = [guess is not None for choice, _ in of for guess in choice]
            for j in range(self.buckets):
                if all(leaks[i * self.buckets + (j + shift) % self.buckets] for i, shift in enumerate(shifts)):
                    return True
        return False

    def score(self, state, history):
        return int(not self.progress(history)[1] and self.full(history))
