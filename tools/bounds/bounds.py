"""Every bound of the documents, from the constants that the code exports (`tacit bench bounds --json`).

The formulae are written down here once more, from the pages and not from the Rust sources: `test_bounds.py` compares the
two, and both with the documents. A chance is its log2; everything else is a count.

    tools/bounds/bounds.py FILE     prints all bounds by name, from the JSON in FILE
"""

import json
import sys
from dataclasses import dataclass
from math import ceil, comb, e, exp, lgamma, log, log2, sqrt


@dataclass(frozen=True)
class Bound:
    """A number of the documents: `chance` if it is the log2 of one."""

    value: float
    chance: bool = False


def chance(log2_of):
    return Bound(float(log2_of), True)


def added(*logs):
    """log2 of a sum, from the logs of its parts."""
    most = max(logs)
    return most + log2(sum(2.0 ** (part - most) for part in logs))


def log2_factorial(n):
    return lgamma(n + 1) / log(2)


# Set intersection.


def encodable(slots, bits, calls, error):
    """How many of 2^calls random values some store of `slots` slots of `bits` bits holds, but for 2^-error: the most n for
    which C(q, n)·2^(bits·(slots − n)) is larger, with C(q, n) ≤ (q·e/n)^n."""
    n = slots
    while n * (calls + log2(e) - log2(n)) - bits * (n - slots) + error > 0:
        # Each more of them costs that much at least: so far it cannot be.
        each = bits - calls + log2(n)
        n += max(1, int((n * (calls + log2(e) - log2(n)) - bits * (n - slots) + error) / (2 * each)))
    while not n * (calls + log2(e) - log2(n)) - bits * (n - slots) + error > 0:
        n -= 1
    return max(n, slots)


def testable(tags, bits, calls, error):
    """How many elements so many tags of `bits` bits stand for, of 2^calls: tag by tag one element more, the cheapest
    first, as long as the sets that this takes are there with 2^-error.

    There are E(k) = C(q, k)·2^(bits·(1 − k)) sets of k calls with one tag, on average; below one of them, one more
    element costs a tag E(k)/E(k + 1)."""

    def cost(k):
        return -(k * calls - log2_factorial(k) - (k - 1) * bits)

    k = 1
    while cost(k + 1) <= 1:
        k += 1
    tested, left, before = tags * k, error, 0.0
    while True:
        k += 1
        each = cost(k) - before
        more = min(tags, ceil(left / each) - 1)
        tested += more
        if more < tags:
            return tested
        left, before = left - tags * each, cost(k)


def poisson_tail(mean, least):
    """log2 of the chance that a Poisson variable is `least` or more."""
    first = least * log(mean) - mean - lgamma(least + 1)
    total, term, k = 0.0, 1.0, least
    while term > 1e-18 * (total + 1e-300):
        total += term
        k += 1
        term *= mean / k
    return (first + log(total)) / log(2)


def tested_sorted(announced, calls, key_bits, error):
    """How many keys so many entries of `sorted` test: the sets of two or more keys in one entry, but for 2^-error."""
    tested, keys = announced, 2
    while True:
        mean = keys * calls - log2_factorial(keys) - (keys - 1) * key_bits
        if mean < -error:
            return tested
        least, mean = 1, 2.0**mean
        if mean > 1e6:
            least = int(mean + 7 * sqrt(mean))
        while least <= announced and poisson_tail(mean, least) >= -error:
            least += 1
        # Fewer than so many are there.
        tested += min(announced, least - 1)
        keys += 1


def fullest(keys, bins, bits):
    """The keys of the fullest of so many bins, by Bernstein's inequality, but for 2^-bits each."""
    mean, l = -(-keys // bins) + 1, bits * log(2)
    return mean + l / 3 + sqrt(l * l / 9 + 2 * l * mean)


def store(shape):
    """The clustered store's chance to fail: a bin overflows, peeling gets stuck, few keys pick the same slots, or dense
    rows are dependent (docs/notes/psi.md)."""
    keys, bins, sparse, dense = shape["keys"], shape["bins"], 3 * shape["third"], shape["dense"]
    room = keys if bins == 1 else fullest(keys, bins, 42 + log2(bins))
    parts = [] if bins == 1 else [-42.0]
    stuck = 2 ** (0.555 * log2(room) + 2.336) * (sparse / room - 1.223) - 9.2
    few = log2(27 * room * room / (2 * sparse**3)) * (dense + 1)
    if keys > dense:
        parts += [log2(bins) - stuck, log2(bins) + few]
    return added(*parts, log2(bins) + dense - 128)


# Authenticated garbling.


def sessions_bits(sessions):
    """40 bits of a job, and as many more as it has sessions."""
    return 40 + ceil(log2(sessions))


def message_bits(bits):
    return 4 * ceil((bits + 4) / 4)


def bucket_size(buckets, bits, together):
    """The least B of which 2^-B·ℓ^-(B−1) ≤ C·(1 − 2^-k), C = 2^-bits − 2^-(W−1), k rows in a window's first check."""
    c = 2.0**-bits - 2.0 ** -(message_bits(bits) - 1)
    size = 3
    while -size - (size - 1) * log2(buckets) > log2(c) + log2(1 - 2.0 ** -min(size, together)):
        size += 1
    return size


def together(buckets):
    """Rows of a window's first check: the first, and of the others as many as have 920,000 triples, seven at most."""
    return 1 + min(7, max(1, 920_000 // buckets))


def least_buckets(size, bits, most):
    """From how many buckets on one has so many triples, at the least."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if bucket_size(middle, bits, together(middle)) <= size:
            high = middle
        else:
            low = middle + 1
    return low


# Cut-and-choose.


def probe_width(rows, least):
    """The fewest random columns beside the identity with which the sums of i ≤ ρ rows have weight ρ, but for 2^-ρ."""

    def fails(width):
        below, total = 0, 0
        table = []
        for t in range(least):
            below += comb(width, t)
            table.append(below)
        for i in range(1, min(least, rows + 1)):
            total += comb(rows, i) * table[least - 1 - i]
        return total * 2**least > 2**width

    width = 1
    while fails(2 * width):
        width *= 2
    width, step = 2 * width, width
    while step:
        while width > step and not fails(width - step):
            width -= step
        step //= 2
    return width


def unfit_pairs(columns, k):
    """Pairs of vectors that Δ is behind, of which two that differ must hash alike where rows do not fit (SoftSpoken, 3.3).

    A bit has 2^(k-1) sums and as many columns with Δ's value, Δ's own among them.
    """
    each = 2 ** (k - 1)
    return columns * (columns - 1) // 2 * each**2 + columns * (each * (each - 1) // 2 + each - 1)


def of_extension(constants):
    """The checks of OT extension and of trees (docs/security-notes.md)."""
    kappa = constants["kappa"]
    columns, depth = constants["kos"]["columns"], constants["softspoken"]["depth"]
    groups = {k: log2(unfit_pairs(columns - 1, k)) for k in constants["softspoken"]["groups"]}
    half = kappa // 2
    return {
        "field": chance(-kappa),
        "field.less": chance(1 - kappa),
        "kos.pairs": chance(log2((columns - 1) * (columns - 2) / 2) - kappa),
        "softspoken": chance(groups[depth] - kappa),
        **{f"softspoken.{k}": chance(pairs - kappa) for k, pairs in groups.items()},
        "bit_triples": chance(1 + log2(constants["bit_triples"]["group"]) - kappa),
        "oos.low": chance(half - 1 - kappa),
        "oos.high": chance(-half),
        "oos": chance(1 - half),
        "trees.mean": chance(-kappa - 1),
        "trees": chance(-half),
        # Every depth of a tree, 24 at most.
        "trees.leaves": chance(log2(sqrt(24 + 3)) - half),
    }


def of_garbling(constants):
    """Authenticated garbling and cut-and-choose."""
    found = {"halves": chance(1 - constants["kappa"] // 2), "search": chance(1 - constants["kappa"])}
    for sessions in (1, 2, 16, 64):
        bits = sessions_bits(sessions)
        found[f"session.{sessions}"] = chance(-bits)
        found[f"session.{sessions}.bits"] = Bound(bits)
        found[f"session.{sessions}.message"] = Bound(message_bits(bits))
        found[f"session.{sessions}.product"] = chance(1 - message_bits(bits))
        for size in (3, 4, 5):
            least = least_buckets(size, bits, constants["authenticated"]["window"])
            found[f"session.{sessions}.from.{size}"] = Bound(least)
            found[f"session.{sessions}.below.{size}"] = Bound(least - 1)
    for copies in constants["wmk17"]["copies"]:
        found[f"wmk17.{copies['name']}"] = chance(-log2(comb(copies["total"], copies["evaluated"])))
    found["wmk17.coins.40"] = chance(log2(41) - 40)
    return found


def of_sizes(exported):
    """What follows from sets' sizes, for the slots that the code gives a store."""
    constants, bounds, found = exported["constants"], exported["bounds"], {}
    rho = constants["rho"]
    for line in bounds["tested"]:
        protocol, part, announced, calls = (line[name] for name in ("protocol", "part", "announced", "calls"))
        if protocol == "sorted":
            value = tested_sorted(announced, calls, constants["sorted"]["key_bits"], rho)
        elif part == "sends":
            value = testable(announced, 128, calls, rho)
        else:
            bits = constants["paxos"]["dimension"] if protocol == "paxos" else 128
            value = max(announced, encodable(line["slots"], bits, calls, rho))
        found[f"{protocol}.{part}.{announced}.{calls}"] = Bound(value)
    for line in bounds["stores"]:
        found[f"store.{line['keys']}"] = chance(store(line))
        found[f"store.{line['keys']}.expansion"] = Bound(line["slots"] / line["keys"])
    for line in bounds["buckets"]:
        name = f"buckets.{line['keys']}.{line['buckets']}"
        error = rho + log2(line["buckets"]) + 2
        for tested in line["tested"]:
            value = encodable(line["slots"], 128, tested["calls"], error)
            found[f"{name}.{tested['calls']}.attempt"] = Bound(value)
            found[f"{name}.{tested['calls']}.bucket"] = Bound(value * constants["buckets"]["attempts"])
            found[f"{name}.{tested['calls']}.run"] = Bound(value * constants["buckets"]["attempts"] * line["buckets"])
    return found


def of_runs(constants):
    """What a run, a bucket, an attempt and a service's day come to."""
    rho, attempts, overflow = constants["rho"], constants["buckets"]["attempts"], constants["buckets"]["overflow"]
    errs = log2(attempts) - rho - 2
    overflows = log2(2 * attempts) - overflow
    return {
        "run": chance(-rho),
        "buckets.overflow": chance(overflows),
        "buckets.errs": chance(errs),
        "buckets.both": chance(added(errs, overflows)),
        "buckets.64.attempt": chance(-rho - 2 - 6),
        "buckets.64.bucket": chance(log2(attempts) - rho - 2 - 6),
        "day.100": chance(log2(100) - rho),
        "lpn.least": Bound(min(line["bits"] for line in constants["lpn"]["sets"])),
    }


def of_small_things():
    """Numbers that rest on nothing but themselves."""
    return {
        "digest": chance(-256),
        "mark.mebibyte": chance(16 - 128),
        # The bad copy is evaluated, and an error vanishes there, over GF(2^8) (notes/wmk17.md).
        "coded.bytes": chance(log2(22 / 44) - 8),
    }


# The proof pages. What the code does not export stands here; `test_bounds.py` holds it to the sources.

KOS_BATCH = 2**16 - 128
# Trees that share a key of half-trees, the greatest depth, and trees of VOLE over GF(2^128) in a run.
KEY, DEEPEST, VOLE_TREES = 32, 20, 424
# Trees and their depth, where a run of the short form has most nodes, and an answer of NISC.
SHORT_TREES, SHORT_DEPTH = 200, 11
NISC_NODES, NISC_DEPTH = 4420, 18
# Runs of VOLE for a store of 2^24 keys.
STORE_RUNS = 48
# Ferret-Uni: noisy positions and buckets.
PLACES = {"main": (1324, 1986), "a": (1360, 2080), "setup": (1254, 1881)}
# ROTed's default set: the modulus, the rank times the degree, coefficients that are reconciled.
MODULUS, UNKNOWN, RECONCILED = 7681, 3 * 256, 256


def multiple(count, calls, bits):
    """log2 of the mean number of sets of `count` of 2^calls random values of `bits` bits that are all equal."""
    return count * calls - log2_factorial(count) - (count - 1) * bits


def places_missing(trees, buckets):
    """log2 of a bound on the chance that so many triples of buckets have no place, by Hall: the smallest set without one,
    of s positions, has s − 1 buckets, each of which it meets twice."""

    def draws(s):
        def balls(z):
            return (s - 1) * log2(exp(z) - 1 - z) - 3 * s * log2(z)

        few = log2_factorial(3 * s) + min(balls(step / 40) for step in range(1, 400))
        return min(few, 3 * s * log2(s - 1))

    def choose(n, k):
        return log2_factorial(n) - log2_factorial(k) - log2_factorial(n - k)

    distinct = log2((1 - 1 / buckets) * (1 - 2 / buckets))
    sizes = range(4, trees + 1)
    return added(*(choose(trees, s) + choose(buckets, s - 1) + draws(s) - s * (3 * log2(buckets) + distinct) for s in sizes))


def together_with_labels(copies, evaluated, weight):
    """Set and labels of WMK17 in one game, by the simulator that takes y = 0 and by the best one."""
    guess = -log2(comb(copies, evaluated))
    return added(guess, 1 - weight), added(guess, -weight)


def keys_differ():
    """log2 of a bound on the chance that honest ends of ROTed disagree: Chernoff, for a difference d of at least a quarter of
    the modulus, where Mod2 may differ, whatever the value is. d is twice the sum of 2·768 products of two values of the
    centred binomial law and of two such values."""
    noise = {value: comb(4, value + 2) / 16 for value in range(-2, 3)}
    products = [(x * y, p * r) for x, p in noise.items() for y, r in noise.items()]
    least = MODULUS // 4 / 2

    def tail(rate):
        one = log2(sum(p * exp(rate * x) for x, p in noise.items()))
        two = log2(sum(p * exp(rate * x) for x, p in products))
        return 2 * UNKNOWN * two + 2 * one - rate * least * log2(e)

    return log2(2 * RECONCILED) + min(tail(step / 1000) for step in range(1, 1000))


def of_oblivious_transfer(constants):
    """Base OT, KOS, SoftSpoken, Ferret, silent OT, NISC, VOLE, and pools."""
    kappa, found = constants["kappa"], of_extension(constants)
    kos, trees = found["kos.pairs"].value, found["trees.leaves"].value
    # Of 2^40 OTs, which go in pieces of 2^20.
    batches = 20 + log2(ceil(2**20 / KOS_BATCH))
    streams = 2 * (40 - 7) - kappa - 1

    def short(depth):
        return (1 + log2(depth + 5) - kappa - 1) / 2

    # Either direction of the cipher; Δ has a bit less than a block.
    level = log2(2 * KEY * DEEPEST) + 1 - kappa
    kernel = 2 - kappa

    def leaves(runs):
        return log2(VOLE_TREES * runs) + kernel

    placed = {name: places_missing(*sizes) for name, sizes in PLACES.items()}
    numbers = {
        "scalar": -252,
        "scalar.twice": 1 - 252,
        "hash.384": -384,
        "hash.384.cube": 3 * 80 - 384,
        "roted.differs": keys_differ(),
        # Differences of two openings with coefficients up to 20, among the values of an offset.
        "roted.openings": 2 * UNKNOWN * log2(4 * 20 + 1) - UNKNOWN * log2(MODULUS),
        "pairs": -kappa - 1,
        "digest.pairs": -257,
        "kos.run": batches + kos,
        "kos.tests": log2(constants["kos"]["columns"]) + 1 - kappa,
        "kos.tests.all": log2(2 * constants["kos"]["columns"]) + 1 - kappa,
        "kos.left": log2(KOS_BATCH / kappa) - kappa,
        "kos.streams": log2(constants["kos"]["columns"] - 1) + streams,
        **{f"softspoken.streams.{k}": log2(ceil((constants["kos"]["columns"] - 1) / k)) + streams for k in constants["softspoken"]["groups"]},
        "kos.steps": -40 - kos,
        "softspoken.steps": -40 - found["softspoken"].value,
        "softspoken.steps.2": -40 - found["softspoken.2"].value,
        # A group of eight bits has 255 values that P can miss one after the other, the last one 127.
        "softspoken.tests.8": log2(2 * (15 * 255 + 127 + 1)) + 1 - kappa,
        "softspoken.run.8": batches + found["softspoken.8"].value,
        "trees.run": trees,
        "trees.pool": 20 + trees,
        "trees.48": log2(STORE_RUNS) + trees,
        "trees.4096": 12 + trees,
        "trees.claims": log2(DEEPEST + 5) - kappa - 1,
        "ferret.run": 20 + found["trees"].value,
        "levels": level,
        # Set a, and b which has its size, place four lanes an iteration.
        "ferret.places.a": placed["a"],
        "ferret.places.main": placed["main"],
        "ferret.places": max(2 + placed["a"], placed["main"], placed["setup"]),
        "short": short(SHORT_DEPTH),
        "short.20": short(DEEPEST),
        "nisc": short(NISC_DEPTH),
        "short.steps": 2 * (-40 - short(SHORT_DEPTH)),
        "short.60": 30 + short(SHORT_DEPTH),
        # Pairs of 2^b classes agree with (ℓ + 5)/2^128 each; a try looks through all classes.
        "short.double": (kappa + 1 - log2(SHORT_DEPTH + 5)) / 2,
        "short.nodes": log2(2 * SHORT_TREES * SHORT_DEPTH) - kappa,
        "nisc.nodes": log2(2 * NISC_NODES) - kappa,
        "anchor": sqrt(81) - kappa,
        "trees.agree": log2(comb(SHORT_TREES, 2)) - kappa,
        "kernel": kernel,
        "vole.leaf": leaves(1),
        "vole.leaf.48": leaves(STORE_RUNS),
        "vole": added(level, leaves(1)),
        "vole.48": added(level, leaves(STORE_RUNS)),
        "subfield.leaf": 3 - kappa,
        "subfield": log2(KEY) + 3 - kappa,
    }
    return {name: chance(value) for name, value in numbers.items()}


def of_computing(exported):
    """WMK17, PSI in all its forms, and tags."""
    constants, errors = exported["constants"], exported["bounds"]["errors"]
    rho, overflow = constants["rho"], -constants["buckets"]["overflow"]

    def largest(protocol):
        return max(line["log2"] for line in errors if line["protocol"] == protocol and line["security"] == "malicious")

    vole, oos = largest("vole"), of_extension(constants)["oos"].value
    attempts, three = vole + log2(3 / 4), log2(3) + overflow
    numbers = {
        "oos.1050": log2(1050) + oos,
        "paxos.errors": largest("paxos"),
        "paxos.value": -constants["paxos"]["dimension"],
        "vole.errors": vole,
        "buckets.one": overflow,
        "buckets.three": three,
        "buckets.all": added(attempts, three),
        "buckets.honest": added(vole - 2, 1 + overflow),
        "key.four": multiple(4, 80, 128),
        "pairs.five": 5 * multiple(2, 60, 128) - log2_factorial(5),
        "triples.three": 3 * multiple(3, 80, 128) - log2_factorial(3),
        "room.60": 60 - 128,
        "room.80": 80 - 128,
        "sorted.equal": -rho - 1,
        "sorted.16384": 2 * log2(constants["sorted"]["most"]) - 128,
    }
    least = rho + constants["wmk17"]["margin"]
    # Chunks are of two sizes, so of two matrices.
    numbers["wmk17.matrix"], matrices = -least, 1 - least
    for copies in constants["wmk17"]["copies"]:
        joint, best = together_with_labels(copies["total"], copies["evaluated"], least)
        numbers[f"wmk17.joint.{copies['name']}"], numbers[f"wmk17.best.{copies['name']}"] = joint, best
        numbers[f"wmk17.all.{copies['name']}"] = added(joint, matrices)
    for count in (4, 5, 7, 8):
        numbers[f"tags.equal.{count}"] = multiple(count, 60, 74)
    numbers["tags.equal.10.small"] = multiple(10, 60, 61)
    found = {name: chance(value) for name, value in numbers.items()}
    found["tags.equal.4.tags"] = Bound(2.0 ** multiple(4, 60, 74))
    found["tags.equal.5.percent"] = Bound(100 * (1 - exp(-(2.0 ** multiple(5, 60, 74)))))
    return found


def all_bounds(exported):
    constants = exported["constants"]
    parts = [of_extension(constants), of_garbling(constants), of_sizes(exported), of_runs(constants), of_small_things()]
    parts += [of_oblivious_transfer(constants), of_computing(exported)]
    return {name: bound for part in parts for name, bound in part.items()}


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        for name, bound in all_bounds(json.load(file)).items():
            print(f"{name}: {f'2^{bound.value:.2f}' if bound.chance else bound.value}")
