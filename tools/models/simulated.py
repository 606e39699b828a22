"""Whole runs of authenticated garbling against the simulators of docs/proofs/authenticated-run.md, exactly.

*What is modelled.* Blocks of two bits, whose lowest bit of Δ is 1; hashes are tables of random values; triples and bits
are as the page on them gives them. Masks, openings of D and E, rows, colours, labels, Λ, the check of the gates and the
masks of outputs follow section 2, in its order.

- `garbler_differs`: a garbler drawn at random, whose labels and rows depend on all that it has seen. Its view of the
  protocol, over all coins of the evaluator, against its view of the simulator of section 4, which has the function's
  outputs in place of the evaluator's input.
- `evaluator_tells`: an honest garbler, seen by an evaluator drawn at random. Its view up to 2.6, over all coins of the
  garbler, is one and the same for all inputs and all Δ of the garbler; Λ, shares of the check and outputs are those of
  sections 5.3 to 5.5.

*What is left out.* Flips of D and E, false Λ and guesses of Δ, which are games of `garbling.py`; sizes of hashes.

*Why the tiny case says something.* No step of the argument counts bits: the views are equal or they are not.
"""

from collections import Counter
from itertools import product
from random import Random

SIZE = 4
CLEAR = SIZE - 2
BITS = (0, 1)

# Inputs of the garbler, inputs of the evaluator, gates and outputs. Wire 0 is the constant one, then come the inputs.
CIRCUITS = {
    "one gate": (1, 1, [("&", 1, 2, 3)], [3]),
    "a wire with itself": (0, 1, [("&", 1, 1, 2)], [2, 1]),
    "the constant": (1, 1, [("&", 0, 2, 3)], [3, 3, 1]),
    "no gate": (1, 1, [("^", 1, 2, 3), ("^", 3, 0, 4), ("^", 3, 3, 5)], [4, 1, 2, 5, 0]),
    "a chain": (1, 1, [("&", 1, 2, 3), ("^", 3, 2, 4), ("^", 1, 0, 5), ("&", 4, 5, 6), ("^", 3, 6, 7)], [7, 2, 1, 6, 6]),
    "a sum of gates": (1, 1, [("&", 1, 2, 3), ("&", 2, 1, 4), ("^", 3, 4, 5)], [5, 4]),
    "a square": (0, 2, [("&", 1, 2, 3), ("&", 3, 3, 4)], [4]),
    "a value not shown": (1, 2, [("&", 1, 2, 4), ("&", 4, 3, 5)], [5]),
}


def value(circuit, xs, ys):
    _, _, gates, outputs = circuit
    wires = dict(enumerate((1, *xs, *ys)))
    for kind, a, b, out in gates:
        wires[out] = wires[a] & wires[b] if kind == "&" else wires[a] ^ wires[b]
    return tuple(wires[out] for out in outputs)


def spread(circuit, inputs, results):
    """What is linear in masks (shares, keys, MACs), for all wires, from those of inputs and results of AND gates."""
    wires, results = dict(enumerate((0, *inputs))), iter(results)
    for kind, a, b, out in circuit[2]:
        wires[out] = next(results) if kind == "&" else wires[a] ^ wires[b]
    return wires


def bits(n):
    return product(BITS, repeat=n)


class Garbler:
    """A corrupted garbler: its Δ, shares and keys, and its messages as functions of what it has seen."""

    def __init__(self, circuit, seed):
        own, peer, gates, _ = circuit
        self.circuit, self.seed = circuit, seed
        rng = Random(seed)
        key = lambda: rng.randrange(SIZE) & CLEAR  # noqa: E731
        self.delta = rng.randrange(SIZE) | 1
        self.ands = [gate for gate in gates if gate[0] == "&"]
        self.masks = spread(circuit, [rng.randrange(2) for _ in range(own)] + [0] * peer, [rng.randrange(2) for _ in self.ands])
        self.keys = spread(circuit, [0] * own + [key() for _ in range(peer)], [key() for _ in self.ands])
        self.triples = [([rng.randrange(2) for _ in range(3)], [key() for _ in range(3)]) for _ in self.ands]
        self.hashes = [[[rng.randrange(SIZE) for _ in range(SIZE)] for _ in BITS] for _ in self.ands]

    def chosen(self, what, seen):
        """A message of so many blocks."""
        rng = Random(f"{self.seed} {seen}")
        return [rng.randrange(SIZE) for _ in range(what)]

    def product(self, gate, opened):
        """Its share of λ_1·λ_2 and its key of the other's, by what the evaluator opened; and D and E."""
        _, a, b, _ = self.ands[gate]
        (x, y, z), keys = self.triples[gate]
        d, e = opened[0] ^ x ^ self.masks[a], opened[1] ^ y ^ self.masks[b]
        share = z ^ e & self.masks[a] ^ d & self.masks[b] ^ d & e
        return share, keys[2] ^ e * self.keys[a] ^ d * self.keys[b], d, e


def protocol(garbler, ys, coins, stretches, flaw=None):
    """What the garbler sees of an evaluator with input ys."""
    circuit, delta, masks, keys = garbler.circuit, garbler.delta, garbler.masks, garbler.keys
    own, _, gates, outputs = circuit
    inputs, results, xs, pads = coins
    if flaw == "one mask":
        results = results[:1] * len(results)
    if flaw == "one pad":
        xs = xs[:1] * len(xs)
    mine = spread(circuit, (0,) * own + inputs, results)
    mac = lambda key, share: key ^ delta * share  # noqa: E731
    seen, opened, products = [], [], []
    for gate, (_, a, b, _) in enumerate(garbler.ands):
        x, y, z = garbler.triples[gate][0]
        c = z ^ (x ^ xs[gate]) & (y ^ pads[gate])
        opened.append((xs[gate] ^ mine[a], pads[gate] ^ mine[b]))
        _, _, d, e = garbler.product(gate, opened[-1])
        products.append(c ^ e & mine[a] ^ d & mine[b])
    masked = tuple(y ^ share for y, share in zip(ys, inputs))
    labels, shares, wrong = None, iter(range(len(garbler.ands))), False

    def labelled():
        seen.append(masked)
        sent = garbler.chosen(own + len(ys), seen)
        if flaw != "labels as they come":
            sent[own:] = [label & CLEAR | bit for label, bit in zip(sent[own:], masked)]
        return {0: 1, **{1 + i: label for i, label in enumerate(sent)}}

    if not stretches:
        seen.append(tuple(opened))
    if not stretches or not opened:
        labels = labelled()
    for kind, a, b, out in gates:
        if kind == "^":
            if labels:
                labels[out] = labels[a] ^ labels[b]
            continue
        gate = next(shares)
        if stretches:
            seen.append(opened[gate])
            labels = labels or labelled()
        first, second, colour = garbler.chosen(3, seen)
        share, key, _, _ = garbler.product(gate, opened[gate])
        la, lb = labels[a] & 1, labels[b] & 1
        label = garbler.hashes[gate][0][labels[a]] ^ garbler.hashes[gate][1][labels[b]]
        label ^= la * (first ^ mac(keys[b], mine[b])) ^ lb * (second ^ mac(keys[a], mine[a]) ^ labels[a])
        label ^= mac(key ^ keys[out], products[gate] ^ mine[out])
        result = (label ^ colour) & 1
        labels[out] = label & CLEAR | result
        seen.append((result, labels[out]))
        c = la & (mine[b] ^ masks[b]) ^ lb & (mine[a] ^ masks[a]) ^ la & lb ^ result
        wrong |= bool(c ^ products[gate] ^ share ^ mine[out] ^ masks[out])
        if wrong and stretches:
            return (*seen, "stopped")
    if wrong and flaw != "outputs first":
        return (*seen, "stopped")
    shown = tuple((mine[out], mac(keys[out], mine[out])) for out in outputs)
    return (*seen, shown, tuple(labels[out] & 1 ^ mine[out] ^ masks[out] for out in outputs))


def simulator(garbler, ask, coins, stretches):
    """What the garbler sees of the simulator of section 4, which may ask for the outputs once, by the garbler's input."""
    circuit, delta, masks, keys = garbler.circuit, garbler.delta, garbler.masks, garbler.keys
    own, peer, gates, outputs = circuit
    masked, results, first, second = coins
    opened, seen, labels, gate, wrong = list(zip(first, second)), [], None, -1, False

    def labelled():
        seen.append(masked)
        sent = garbler.chosen(own + peer, seen)
        sent[own:] = [label & CLEAR | bit for label, bit in zip(sent[own:], masked)]
        return {0: 1, **{1 + i: label for i, label in enumerate(sent)}}

    if not stretches:
        seen.append(tuple(opened))
    if not stretches or not opened:
        labels = labelled()
    for kind, a, b, out in gates:
        if kind == "^":
            if labels:
                labels[out] = labels[a] ^ labels[b]
            continue
        gate += 1
        if stretches:
            seen.append(opened[gate])
            labels = labels or labelled()
        row, other, colour = garbler.chosen(3, seen)
        share, key, _, _ = garbler.product(gate, opened[gate])
        la, lb = labels[a] & 1, labels[b] & 1
        known = garbler.hashes[gate][0][labels[a]] ^ garbler.hashes[gate][1][labels[b]] ^ key ^ keys[out]
        known ^= la * (row ^ keys[b]) ^ lb * (other ^ keys[a] ^ labels[a])
        s = results[gate] ^ (known ^ colour) & 1
        labels[out] = (known ^ delta * s) & CLEAR | results[gate]
        seen.append((results[gate], labels[out]))
        theirs = la & masks[b] ^ lb & masks[a] ^ share ^ masks[out]
        wrong |= bool(s ^ la & lb ^ results[gate] ^ theirs)
        if wrong and stretches:
            return (*seen, "stopped")
    if wrong:
        return (*seen, "stopped")
    values = ask(tuple(labels[1 + i] & 1 ^ masks[1 + i] for i in range(own)))
    shares = [bit ^ labels[out] & 1 ^ masks[out] for bit, out in zip(values, outputs)]
    return (*seen, tuple((share, keys[out] ^ delta * share) for share, out in zip(shares, outputs)), values)


def garbler_differs(circuit, seed, stretches=False, flaw=None):
    """Whether this garbler's view of the protocol has another distribution than that of the simulator."""
    garbler = Garbler(circuit, seed)
    n = len(garbler.ands)
    coins = list(product(bits(circuit[1]), bits(n), bits(n), bits(n)))
    for ys in bits(circuit[1]):
        real = Counter(protocol(garbler, ys, coin, stretches, flaw) for coin in coins)
        ideal = Counter(simulator(garbler, lambda xs: value(circuit, xs, ys), coin, stretches) for coin in coins)
        if real != ideal:
            return True
    return False


class Evaluator:
    """A corrupted evaluator's shares and MACs, its masked inputs, and what it asks the hashes for."""

    def __init__(self, circuit, seed):
        own, peer, gates, _ = circuit
        rng = Random(seed)
        draw = lambda: rng.randrange(SIZE)  # noqa: E731
        ands = [gate for gate in gates if gate[0] == "&"]
        self.circuit, self.ands = circuit, ands
        # The lowest bit of a MAC is the share.
        self.macs = spread(circuit, [0] * own + [draw() for _ in range(peer)], [draw() for _ in ands])
        self.triples = [[draw() for _ in range(3)] for _ in ands]
        self.masked = tuple(rng.randrange(2) for _ in range(peer))
        self.hashes = [[[draw() for _ in range(SIZE)] for _ in BITS] for _ in ands]

    def inputs(self):
        own = self.circuit[0]
        return tuple(bit ^ self.macs[1 + own + i] & 1 for i, bit in enumerate(self.masked))


def garbled(evaluator, xs, delta, coins, masked=True):
    """The evaluator's view up to 2.6, or None where a label, the check or an output is not what the page says."""
    circuit, macs = evaluator.circuit, evaluator.macs
    own, peer, gates, outputs = circuit
    lambdas, results, first, second, zeros, unasked = coins
    masks = spread(circuit, lambdas + (0,) * peer, results if masked else (0,) * len(results))
    key = lambda mac, share: mac ^ delta * ((mac & 1) ^ share)  # noqa: E731
    inputs = [x ^ share for x, share in zip(xs, lambdas)] + list(evaluator.masked)
    zero = dict(enumerate([delta ^ 1, *zeros]))
    labels = dict(enumerate([1, *(label ^ delta * bit for label, bit in zip(zeros, inputs))]))
    view, products = [], []
    for gate, (_, a, b, _) in enumerate(evaluator.ands):
        x, y, z = (mac & 1 for mac in evaluator.triples[gate])
        share = z ^ (x ^ first[gate]) & (y ^ second[gate])
        opened = first[gate] ^ masks[a], second[gate] ^ masks[b]
        d, e = opened[0] ^ x ^ macs[a] & 1, opened[1] ^ y ^ macs[b] & 1
        products.append((share ^ e & masks[a] ^ d & masks[b] ^ d & e, evaluator.triples[gate][2] ^ e * macs[a] ^ d * macs[b]))
        view.append(opened)
    view.append(tuple(labels[1 + i] for i in range(own + peer)))
    gate, right = -1, True
    for kind, a, b, out in gates:
        if kind == "^":
            zero[out], labels[out] = zero[a] ^ zero[b], labels[a] ^ labels[b]
            continue
        gate += 1
        share, mac = products[gate]
        # Where the evaluator cannot ask, the hash is a fresh value.
        hashes = [
            {labels[wire]: evaluator.hashes[gate][i][labels[wire]], labels[wire] ^ delta: unasked[2 * gate + i]}
            for i, wire in enumerate((a, b))
        ]
        rows = [hashes[i][zero[wire]] ^ hashes[i][zero[wire] ^ delta] for i, wire in enumerate((a, b))]
        rows[0] ^= key(macs[b], masks[b])
        rows[1] ^= key(macs[a], masks[a]) ^ zero[a]
        result = hashes[0][zero[a]] ^ hashes[1][zero[b]] ^ key(mac ^ macs[out], share ^ masks[out])
        colour, zero[out] = result & 1, result & CLEAR
        view.append((*rows, colour))
        la, lb = labels[a] & 1, labels[b] & 1
        label = hashes[0][labels[a]] ^ hashes[1][labels[b]] ^ mac ^ macs[out]
        label ^= la * (rows[0] ^ macs[b]) ^ lb * (rows[1] ^ macs[a] ^ labels[a])
        bit = (label ^ colour) & 1
        labels[out] = label & CLEAR | bit
        theirs = la & macs[b] ^ lb & macs[a] ^ (mac ^ macs[out]) & 1 ^ la & lb ^ bit
        right &= labels[out] == zero[out] ^ delta * bit
        right &= (la & masks[b] ^ lb & masks[a] ^ share ^ masks[out]) == theirs & 1
    values = tuple(labels[out] & 1 ^ masks[out] ^ macs[out] & 1 for out in outputs)
    return tuple(view) if right and values == value(circuit, xs, evaluator.inputs()) else None


def evaluator_tells(circuit, seed, masked=True):
    """Whether this evaluator's view depends on the garbler's input or Δ, or an honest run comes out wrong."""
    evaluator = Evaluator(circuit, seed)
    own, peer, n = circuit[0], circuit[1], len(evaluator.ands)
    coins = list(product(
        bits(own), bits(n), bits(n), bits(n), product((0, 2), repeat=own + peer), product(range(SIZE), repeat=2 * n)
    ))
    seen = None
    for xs, delta in product(bits(own), (1, 3)):
        views = Counter(garbled(evaluator, xs, delta, coin, masked) for coin in coins)
        if None in views or (seen is not None and seen != views):
            return True
        seen = views
    return False
