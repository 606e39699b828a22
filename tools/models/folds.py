"""Folds of rows on shares (docs/wire/batch.md), exactly: what a party sees tells it the outputs and nothing else.

*What is modelled.* A few rows of three shared bits: whether the place holds a common key, whether the number is there, and
a number of one bit. Products by triples, adders over rows, the larger of two, the last circuit and its opened outputs, in
the order of the page, for `max`, `min`, `over` and a sum, with each least number of matches.

One party's shares and triples are drawn; of the other one's triples all values are gone through at once: a wire's share
is an integer with a bit for each of these worlds. For every input of the other party

- the messages of all worlds are all strings of that length, each once, so they tell nothing;
- the outputs are those of plain computation, and the halves of them that the other party opens are one and the same
  function of the messages for all inputs that have the same outputs.

*What is left out.* How triples are made, and parties that do anything else, against which a fold promises nothing.

*Why the tiny case says something.* No step of the argument counts rows or bits.
"""

from itertools import product
from random import Random

BITS = (0, 1)
ROW = 3


class View:
    """A run as `party` sees it. A wire is the pair of both parties' shares."""

    def __init__(self, triples, party, reuse):
        self.triples, self.party, self.reuse, self.ands, self.messages = triples, party, dict(reuse), 0, []
        self.worlds = 4 ** len(triples)
        self.ones = (1 << self.worlds) - 1

    def coin(self, number):
        """The bit of a world's number, as an integer over all worlds."""
        half = 1 << number
        block = ((1 << half) - 1) << half
        return block * (self.ones // ((1 << 2 * half) - 1))

    def constant(self, bit):
        return self.ones if bit else 0

    def invert(self, wire):
        return (wire[0] ^ self.ones, wire[1])

    def product(self, x, y):
        number = self.reuse.get(self.ands, self.ands)
        self.ands += 1
        a, b, c = map(self.constant, self.triples[number])
        their_a, their_b = self.coin(2 * number), self.coin(2 * number + 1)
        their_c = c ^ ((a ^ their_a) & (b ^ their_b))
        own, other = self.party, 1 - self.party
        sent = (x[other] ^ their_a, y[other] ^ their_b)
        self.messages += sent
        d, e = x[own] ^ a ^ sent[0], y[own] ^ b ^ sent[1]
        halves = [0, 0]
        halves[own], halves[other] = c ^ d & b ^ e & a, their_c ^ d & their_b ^ e & their_a
        halves[0] ^= d & e
        return tuple(halves)


class Count:
    """Counts the products of a fold."""

    ands = 0

    def invert(self, wire):
        return wire

    def product(self, x, y):
        self.ands += 1
        return x


def xor(*wires):
    first = second = 0
    for wire in wires:
        first, second = first ^ wire[0], second ^ wire[1]
    return (first, second)


def majority(run, a, b, c):
    return xor(run.product(xor(a, b), xor(a, c)), a)


def any_of(run, wires):
    none = run.invert(wires[0])
    for wire in wires[1:]:
        none = run.product(none, run.invert(wire))
    return run.invert(none)


def added_up(run, bits):
    """The bits of a sum of bits: full adders over rows, then the last two numbers."""
    columns = [list(bits)] + [[] for _ in range(len(bits).bit_length())]
    while any(len(column) >= 3 for column in columns):
        carries = []
        for at, column in enumerate(columns):
            third = len(column) // 3
            triples = [(column[i], column[third + i], column[2 * third + i]) for i in range(third)]
            columns[at] = [xor(*triple) for triple in triples] + column[3 * third :] + carries
            carries = [majority(run, *triple) for triple in triples]
    total, carry = [], []
    for column in columns:
        terms = column + carry
        total += [xor(*terms)] if terms else []
        carry = [run.product(*terms)] if len(terms) == 2 else [majority(run, *terms)] if len(terms) == 3 else []
    return total


def larger(run, a, b):
    return xor(run.product(run.product(run.invert(a), b), xor(a, b)), a)


def fold(run, rows, kind, least, broken):
    """The opened wires: enough, for a statistic whether there is any, and the number's bits."""
    counts, kept = [], []
    for common, there, number in rows:
        counted = common if kind == "sum" else run.product(common, there)
        number = run.invert(number) if kind == "min" else number
        counts.append(counted)
        kept.append(number if broken == "ungated" else run.product(number, counted))
    matches = added_up(run, counts)
    if kind in ("over", "sum"):
        value = added_up(run, kept)
    else:
        while len(kept) > 1:
            half = len(kept) // 2
            kept = [larger(run, kept[i], kept[half + i]) for i in range(half)] + kept[2 * half :]
        value = [run.invert(kept[0]) if kind == "min" else kept[0]]
    some = any_of(run, matches)
    # Of two or three rows at least two match where the second bit is set.
    enough = {0: [], 1: [some], 2: matches[1:2]}[least]
    gate = enough if kind == "sum" else [run.product(some, enough[0]) if least == 2 else some]
    opened = [run.product(wire, gate[0]) if gate else wire for wire in value]
    extra = [counts[0]] if broken == "a row opened" else []
    return enough + (gate if kind != "sum" else []) + opened + extra


def plain(kind, least, rows):
    """The outputs that a fold of these rows in the clear has."""
    numbers = [number for common, there, number in rows if common and (there or kind == "sum")]
    enough = len(numbers) >= least
    shown = [] if least == 0 else [int(enough)]
    if kind == "sum":
        total = sum(numbers) if enough else 0
        return shown, total
    is_any = enough and bool(numbers)
    of = {"max": max, "min": min, "over": sum}[kind]
    return shown + [int(is_any)], of(numbers) if is_any else 0


def strings(integers, worlds):
    """What these are in each world, as one number."""
    texts = [format(integer, f"0{worlds}b")[::-1] for integer in integers]
    return [int("".join(bits), 2) for bits in zip(*texts, strict=True)]


# Inputs of the other party that are tried where a fold has many products.
SOME = 6
MANY_PRODUCTS = 7


def differs(size, kind, least, broken="", reuse=(), seed=0):
    """The first thing that a view tells beyond the outputs, or that is wrong; nothing if it tells nothing."""
    rng = Random(seed)
    counting = Count()
    fold(counting, [((1, 0),) * ROW] * size, kind, least, broken)
    for party, learns in product(BITS, BITS):
        triples = [tuple(rng.choice(BITS) for _ in range(3)) for _ in range(counting.ands)]
        mine = [[rng.choice(BITS) for _ in range(ROW)] for _ in range(size)]
        seen = {}
        inputs = list(product(BITS, repeat=ROW * size))
        if counting.ands > MANY_PRODUCTS:
            inputs = rng.sample(inputs, SOME)
        for bits in inputs:
            run = View(triples, party, reuse)
            theirs = [bits[ROW * at : ROW * (at + 1)] for at in range(size)]
            order = (lambda a, b: (a, b)) if party == 0 else (lambda a, b: (b, a))
            rows = [
                [order(run.constant(x), run.constant(y)) for x, y in zip(*pair, strict=True)]
                for pair in zip(mine, theirs, strict=True)
            ]
            opened = fold(run, rows, kind, least, broken)
            clear = [[x ^ y for x, y in zip(*pair, strict=True)] for pair in zip(mine, theirs, strict=True)]
            values = [first ^ second for first, second in opened]
            shown, number = plain(kind, least, clear)
            is_right = all(value in (0, run.ones) for value in values)
            found = [int(bool(value)) for value in values]
            if not broken and not reuse:
                head = len(shown)
                total = sum(bit << at for at, bit in enumerate(found[head:]))
                if not is_right or found[:head] != shown or total != number:
                    return f"{found} for {clear}"
            messages = strings(run.messages, run.worlds)
            if sorted(messages) != list(range(run.worlds)):
                return f"messages of {clear} are not uniform"
            # Indexed by the messages: what is opened to this party.
            halves = [None] * run.worlds
            for at, half in zip(messages, strings([wire[1 - party] for wire in opened], run.worlds), strict=True):
                halves[at] = half if learns else None
            outputs = (tuple(shown), number) if learns else None
            if seen.setdefault(outputs, halves) != halves:
                return f"{outputs} comes of two views"
    return ""


# Rows, kind, and the least number of matches.
CASES = [
    *[(1, kind, least) for kind in ("max", "min", "over", "sum") for least in BITS],
    *[(2, "sum", least) for least in (0, 1, 2)],
    (2, "max", 1),
    (2, "min", 0),
    (3, "sum", 0),
]
# Folds with a fault, which the model must see.
BROKEN = [
    ("numbers of keys that are not common", (2, "sum", 1, "ungated")),
    ("a row is opened", (2, "sum", 1, "a row opened")),
]
# The first product's triple serves another one: the second row's, or the last.
REUSED = [(2, "sum", 1, "", ((1, 0),)), (2, "sum", 0, "", ((3, 0),))]
