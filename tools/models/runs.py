"""What a run leaves behind it, and how often it may be tried: tosses, buckets' attempts, NISC's key, pools.

*What is modelled*, in the order of messages and of what is written to the disk:

- `Toss`: the first party commits to a coin, the second sends its own, the first opens (`buckets/meeting.rs`). Either may
  leave when it knows the outcome, as if the line were lost, and the two meet again; each toss is counted on the disk
  before it begins. It wins if the outcome is one of those it wants. Page: tosses times the chance of one.
- `Attempts`: a cheater that learns the matches of a bucket puts other keys into it when it is begun again. It wins if it
  tests the one key that the other side has. Page: begun times places, of all there are.
- `Key`: a receiver's key of `tacit nisc`, whose noise all senders guess at. An answer that fails spends it. They win by
  naming all of it while it serves. Page: 2^-k.
- `Question`: two questions under one key tell how their inputs differ. A sender wins by naming the difference. Page: as
  often as without the key.
- `Pool`: correlations are marked as used, on the disk, before they serve; a failed check wipes the rest. A peer may cut
  the line or be there when the process dies, between any two steps. It wins by two messages under one pad, or by naming
  bits of Δ at a pool that goes on. Page: never, and 2^-k.
- `Together`: two protocols on one pool at a time, each with a check in which a cheater guesses bits of Δ. It hears the
  first verdict before it answers the second check, and wins if a protocol goes on after its check. Page: 2^-k.

*What is left out.* Older copies of a file that are put back, which no file can notice; the peer's own file shows it
(SECURITY.md).

*Why the tiny case says something.* Each is an order of steps, and a count; neither depends on how large the secrets are.
"""

from fractions import Fraction
from itertools import product

from games import many, solve, uniform


class Toss:
    """A party that wants one of `wanted` of `outcomes`, in a run that tosses `tosses` times at most.

    A history is of tosses: what the cheater's coin is, then whether it goes on. `commits` is whether the first party's
    coin is committed to before the second's is sent; a second party that saw it would choose.
    """

    def __init__(self, outcomes, wanted, tosses, commits=True):
        self.outcomes, self.wanted, self.tosses, self.commits = outcomes, wanted, tosses, commits

    def states(self):
        return uniform(product(range(self.outcomes), repeat=self.tosses))

    def choices(self, history):
        step = len(history)
        if self.over(history):
            return []
        if not self.commits and step % 3 == 0:
            return [None]  # the other's coin comes in clear
        return range(self.outcomes) if step % 3 == (0 if self.commits else 1) else self.last(step)

    def last(self, step):
        return ["go on", "leave"] if step % 3 == 2 else [None]

    def over(self, history):
        return len(history) == 3 * self.tosses or (len(history) % 3 == 0 and bool(history) and history[-1][0] == "go on")

    def answer(self, state, history, choice):
        step, toss = len(history) % 3, len(history) // 3
        if step == (1 if self.commits else 0):
            return state[toss]
        return None

    def score(self, state, history):
        *_, (own, one), (other, two), (last, _) = history
        coins = (own, two) if self.commits else (one, other)
        return int(last == "go on" and sum(coins) % self.outcomes < self.wanted)


class Attempts:
    """A cheater in a run of `buckets`, each with `places` for its keys, begun `attempts` times at most. The other side has
    one key of so many `keys`, which lie in the buckets in turn. After each attempt the cheater sees whether its keys
    matched, and may leave or have the bucket again. `counted` is whether attempts are kept over a crash."""

    def __init__(self, keys, buckets, places, attempts, counted=True):
        self.keys, self.buckets, self.places = keys, buckets, places
        # Without a count it begins as often as it likes: often enough to try all keys.
        self.attempts = attempts if counted else -(-keys // (buckets * places))

    def states(self):
        return uniform(range(self.keys))

    def choices(self, history):
        found = any(matched for _, matched in history)
        if found or len(history) == self.buckets * self.attempts:
            return []
        bucket = len(history) // self.attempts
        # Which of a bucket's keys are left does not matter, as all are alike: the next ones, or none.
        tried = {key for keys, _ in history for key in keys}
        left = [key for key in range(bucket, self.keys, self.buckets) if key not in tried]
        return [tuple(left[:count]) for count in range(min(self.places, len(left)) + 1)]

    def answer(self, state, history, choice):
        return state in choice

    def score(self, state, history):
        return int(any(matched for _, matched in history))


class Key:
    """Senders that guess bits of a key's noise, one answer after the other, each hearing whether it passed. `spends` is
    whether an answer that fails spends the key."""

    def __init__(self, bits, answers, spends=True):
        self.bits, self.answers, self.spends = bits, answers, spends

    def states(self):
        return uniform(product((0, 1), repeat=self.bits))

    def choices(self, history):
        if len(history) < self.answers:
            return product((None, 0, 1), repeat=self.bits)
        return product((0, 1), repeat=self.bits) if len(history) == self.answers else []

    def answer(self, state, history, choice):
        if len(history) == self.answers:
            return None
        if self.spends and any(not passed for _, passed in history):
            return False
        return all(guess in (None, bit) for guess, bit in zip(choice, state))

    def score(self, state, history):
        *answers, (named, _) = history
        serves = not self.spends or all(passed for _, passed in answers)
        return int(serves and named == state)


class Question:
    """A key with `bits` random choices, asked so often. A sender sees each question, choices + inputs, and names how the
    first two inputs differ. A key that takes one question answers the second with the same or not at all."""

    def __init__(self, bits, takes):
        self.bits, self.takes = bits, takes

    def states(self):
        each = list(product((0, 1), repeat=self.bits))
        return uniform(product(each, repeat=3))

    def choices(self, history):
        if len(history) < 2:
            return [None]
        return product((0, 1), repeat=self.bits) if len(history) == 2 else []

    def answer(self, state, history, choice):
        if len(history) >= min(self.takes, 2):
            return None
        return tuple(a ^ b for a, b in zip(state[0], state[1 + len(history)]))

    def score(self, state, history):
        return int(history[-1][0] == tuple(a ^ b for a, b in zip(state[1], state[2])))


class Pool:
    """A run that takes one correlation of a pool: it reads where the pool is, marks it on the disk, and sends a message
    under it. The peer may end the process between any two steps; then the run is started again, `runs` times in all, with
    another message. It wins by naming how two messages differ. `order` is the order of steps.
    """

    def __init__(self, runs, order=("mark", "send")):
        self.runs, self.order = runs, order

    def states(self):
        return uniform(product(product((0, 1), repeat=self.runs), product((0, 1), repeat=self.runs)))

    def choices(self, history):
        if len(history) < self.runs:
            return [0, 1, 2]  # after how many steps the process dies; after both it is over
        pairs = [(i, j) for i in range(self.runs) for j in range(i)]
        return product(pairs, (0, 1)) if len(history) == self.runs else []

    def at(self, history):
        """Where the pool is: how many runs have marked."""
        return sum(died > self.order.index("mark") for died, _ in history)

    def answer(self, state, history, choice):
        run = len(history)
        if run == self.runs or choice <= self.order.index("send"):
            return None
        messages, pads = state
        return messages[run] ^ pads[self.at(history)]

    def score(self, state, history):
        (i, j), named = history[-1][0]
        return int(state[0][i] ^ state[0][j] == named)


class Together:
    """Two protocols on one pool, the second of which has its verdict after the first. `settles` is whether verdicts are
    passed in one place, where none passes after one that failed; else a protocol's check looks at its own guess alone."""

    def __init__(self, bits, settles=True):
        self.bits, self.settles = bits, settles

    def states(self):
        return uniform(product((0, 1), repeat=self.bits))

    def choices(self, history):
        return product((0, 1), repeat=self.bits) if len(history) < 2 else []

    def answer(self, state, history, choice):
        if self.settles and any(not passed for _, passed in history):
            return False
        return choice == state

    def score(self, state, history):
        return int(any(passed for _, passed in history))


def cases():
    for outcomes, wanted, tosses in [(4, 1, 1), (4, 1, 3), (5, 2, 2)]:
        bound = 1 - (1 - Fraction(wanted, outcomes)) ** tosses
        value = solve(Toss(outcomes, wanted, tosses))
        yield "tosses: an outcome of one's choice", f"{wanted} of {outcomes}, {many(tosses, 'toss')}", value, "=", bound
    for keys, buckets, places, attempts in [(12, 2, 1, 3), (12, 2, 2, 1), (16, 2, 2, 3)]:
        bound = Fraction(buckets * places * attempts, keys)
        size = f"{buckets} buckets of {many(places, 'place')}, {many(attempts, 'attempt')}, {keys} keys"
        yield "buckets: the key is tested", size, solve(Attempts(keys, buckets, places, attempts)), "=", bound
    for bits, answers in [(2, 1), (2, 2), (3, 2)]:
        value = solve(Key(bits, answers))
        yield "NISC: the noise named", f"{bits} bits, {many(answers, 'answer')}", value, "=", Fraction(1, 2**bits)
    for bits in (1, 2):
        yield "NISC: two inputs' difference named", many(bits, 'choice'), solve(Question(bits, 1)), "=", Fraction(1, 2**bits)
    yield "pools: two messages' difference named", "3 runs", solve(Pool(3)), "=", Fraction(1, 2)
    # What a failed check tells of a pool's Δ is the game of NISC's key: guesses, a verdict each, and what is spent.
    yield "pools: Δ named", "2 bits, 2 runs", solve(Key(2, 2)), "=", Fraction(1, 4)
    for bits in (1, 2, 3):
        value = solve(Together(bits))
        yield "pools: two protocols at a time, one passes", many(bits, "bit"), value, "=", Fraction(1, 2**bits)


def flaws():
    yield "tosses: the first coin in clear", solve(Toss(4, 1, 1, commits=False)), Fraction(1, 4)
    yield "buckets: attempts are forgotten in a crash", solve(Attempts(12, 2, 1, 3, counted=False)), Fraction(1, 2)
    yield "NISC: a key that goes on after a failure", solve(Key(2, 2, spends=False)), Fraction(1, 4)
    yield "NISC: a key that takes two questions", solve(Question(2, 2)), Fraction(1, 4)
    for bits in (1, 2, 3):
        value = solve(Together(bits, settles=False))
        yield f"pools: two protocols that do not settle, {many(bits, 'bit')}", value, Fraction(1, 2**bits)
    yield "pools: marked after it served", solve(Pool(2, ("send", "mark"))), Fraction(1, 2)
