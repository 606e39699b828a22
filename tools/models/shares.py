"""Rows of a circuit on XOR shares (`--protocol batch`): docs/how/batch.md, "Why it is secure".

*What is modelled.* One row, two input bits of each party, triples from a dealer. A party's view is its shares of the
triples, the other's halves of d and e, and the other's halves of the outputs if it learns them. All shares of all
triples are gone through, so distributions are exact. Inputs have no random halves, as in the protocol.

*What is left out.* How triples are made, packing, levels and batches.
"""

from collections import Counter, defaultdict
from itertools import product

# Gates are a kind, two wires and the new one: g and e are inputs of the garbler and of the evaluator, 1 is the constant.
CIRCUITS = {
    "a chain": ([("and", "g0", "e0", "p"), ("xor", "p", "g1", "q"), ("and", "q", "e1", "r")], ["r"]),
    "inputs are outputs": ([("and", "g0", "e0", "p"), ("xor", "g1", "e1", "q"), ("and", "p", "q", "r")], ["q", "r", "g0"]),
    "a square": ([("and", "g0", "g1", "p"), ("and", "p", "p", "q")], ["q", "q", "1"]),
    "a gate twice": ([("and", "g0", "e0", "p"), ("and", "g0", "e0", "q"), ("xor", "q", "e1", "r")], ["r", "p"]),
}


def views(gates, outputs, own, triples, learns):
    """Both parties' views, and the outputs. A triple is a and b of garbler and evaluator, and the garbler's c."""
    wires = [{"1": 1}, {"1": 0}]
    for party, name in enumerate("ge"):
        for i, bit in enumerate(own[party]):
            wires[party][f"{name}{i}"], wires[1 - party][f"{name}{i}"] = bit, 0
    seen, triples = ([], []), iter(triples)
    for kind, x, y, out in gates:
        if kind == "xor":
            for wire in wires:
                wire[out] = wire[x] ^ wire[y]
            continue
        *masks, c = next(triples)
        a, b = masks[:2], masks[2:]
        c = [c, c ^ (a[0] ^ a[1]) & (b[0] ^ b[1])]
        halves = [(wires[p][x] ^ a[p], wires[p][y] ^ b[p]) for p in (0, 1)]
        d, e = (halves[0][i] ^ halves[1][i] for i in (0, 1))
        for p in (0, 1):
            seen[p].extend([a[p], b[p], c[p], *halves[1 - p]])
            wires[p][out] = c[p] ^ d & b[p] ^ e & a[p] ^ (d & e if p == 0 else 0)
    for p in learns:
        seen[p].extend(wires[1 - p][wire] for wire in outputs)
    return tuple(seen[0]), tuple(seen[1]), tuple(wires[0][wire] ^ wires[1][wire] for wire in outputs)


def leaks(gates, outputs, learns, reuse=False):
    """Pairs of inputs of the other party that a view tells apart although the outputs do not, and all such pairs."""
    ands = sum(gate[0] == "and" for gate in gates)
    known = [defaultdict(list), defaultdict(list)]
    for own in product(product((0, 1), repeat=2), repeat=2):
        counts = [Counter(), Counter()]
        for drawn in product(product((0, 1), repeat=5), repeat=1 if reuse else ands):
            *both, value = views(gates, outputs, own, drawn * ands if reuse else drawn, learns)
            for count, view in zip(counts, both):
                count[view] += 1
        for p in (0, 1):
            known[p][own[p], value if p in learns else None].append(counts[p])
    pairs = [count == group[0] for of in known for group in of.values() for count in group[1:]]
    return pairs.count(False), len(pairs)
