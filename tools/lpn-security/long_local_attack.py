#!/usr/bin/env python3
"""The attack on local codes, run: it chooses columns, shares one elimination among many instances, and
recovers secrets as often as the estimator says, at two sizes of the primal code and at two of the code that
accumulates.

Everything follows from fixed seeds. Ends with `N passed, N failed`; `scripts/run_tests.py --long` runs it.
"""

import math
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import lpn_security as lpn

# Parity checks of a sub-instance. A right candidate leaves noise in few of them.
CHECKS = 60
NOISY = 12


def chosen(rows, columns, arity, group=1):
    """The columns that peeling leaves, by the order in which a plain loop takes columns away: not `lpn.peel`,
    whose share it must reach."""
    left, kept = set(range(columns)), set(range(len(rows) // arity))
    meets = [set() for _ in range(columns)]
    for place, column in enumerate(rows):
        meets[column].add(place // arity)
    while True:
        column = min(left, key=lambda c: (len(meets[c]), c))
        gone = set(meets[column])
        if len(kept) - len(gone) < group * (len(left) - 1) + CHECKS:
            return left, kept
        left.remove(column)
        kept -= gone
        for row in gone:
            for other in rows[row * arity : (row + 1) * arity]:
                meets[other].discard(row)


class SubInstance:
    """The rows that chosen columns leave, eliminated once: `basis` are independent rows, every other row is a
    parity check."""

    def __init__(self, masks, rng):
        """`masks` maps a row's number to its ones. The basis is drawn from all blocks alike: in order of
        their numbers the checks would take the last block's rows, and uneven rows are free of noise less
        often."""
        self.basis, self.checks, pivots = [], [], {}
        order = list(masks.items())
        rng.shuffle(order)
        for row, mask in order:
            among = 0
            while mask:
                top = mask.bit_length() - 1
                if top not in pivots:
                    break
                other, combination = pivots[top]
                mask ^= other
                among ^= combination
            if mask:
                pivots[mask.bit_length() - 1] = (mask, among ^ 1 << len(self.basis))
                self.basis.append(row)
            elif len(self.checks) < CHECKS:
                self.checks.append((row, among))
        self.pivots = pivots
        # For each row of the basis, the checks that it is in.
        self.columns = [
            sum((among >> i & 1) << place for place, (_, among) in enumerate(self.checks))
            for i in range(len(self.basis))
        ]

    def syndrome(self, samples):
        """The checks of one instance's samples, which the noise alone decides."""
        known = sum(samples[row] << i for i, row in enumerate(self.basis))
        return sum(
            ((known & among).bit_count() & 1 ^ samples[row]) << place
            for place, (row, among) in enumerate(self.checks)
        )

    def solve(self, samples, wrong):
        """The unknowns, as a number, when the samples of the basis at the places `wrong` are noisy and no
        others."""
        known = sum(samples[row] << i for i, row in enumerate(self.basis)) ^ sum(1 << i for i in wrong)
        secret = 0
        for top in sorted(self.pivots):
            mask, among = self.pivots[top]
            value = (known & among).bit_count() + (secret & mask).bit_count()
            secret |= (value & 1) << top
        return secret

    def halves(self):
        middle = len(self.basis) // 2
        return range(middle), range(middle, len(self.basis))

    def candidates(self, samples, pairs):
        """Places that are held to be noisy: none, or (with `pairs`) one in each half, that leave little of
        the syndrome."""
        syndrome = self.syndrome(samples)
        if not pairs:
            return [()] if syndrome.bit_count() <= NOISY else []
        first, second = self.halves()
        found = []
        for i in first:
            rest = syndrome ^ self.columns[i]
            found += [(i, j) for j in second if (rest ^ self.columns[j]).bit_count() <= NOISY]
        return found


def regular_noise(samples, blocks, rng):
    """One noisy sample in each block."""
    block = samples // blocks
    noise = bytearray(samples)
    for i in range(blocks):
        noise[i * block + rng.randrange(block)] = 1
    return noise


class Rates(unittest.TestCase):
    def compare(self, hits, instances, instance, unknowns, p):
        """Rate of success against the estimator's chance, within three standard deviations."""
        chance = 2 ** lpn.halves_chance(instance, unknowns, p)
        deviation = math.sqrt(instances * chance * (1 - chance))
        expected = f"expected {instances * chance:.1f} ± {deviation:.1f}"
        print(f"{instance.name}, {unknowns} unknowns, {p} errors: {hits} of {instances}, {expected}")
        self.assertGreater(instances * chance, 40, "too few successes are expected to tell anything")
        self.assertLessEqual(abs(hits - instances * chance), 3 * deviation)

    def primal(self, k, ratio, t, instances, pairs):
        rng = random.Random(k)
        n = k * ratio
        rows = lpn.local_rows(k, ratio, 10, rng)
        columns, kept = chosen(rows, k, 10)
        # Columns that are met by an even number of a row's ten indices drop out of it.
        masks, whole = {}, []
        for row in range(n):
            mask = 0
            for column in rows[row * 10 : row * 10 + 10]:
                mask ^= 1 << column
            whole.append(mask)
            if row in kept:
                masks[row] = mask
        sub = SubInstance(masks, rng)
        unknowns = len(sub.basis)
        # The rows that keep the unknowns determined are as many as the columns, but for a few: those are the
        # checks.
        self.assertGreaterEqual(unknowns, len(columns) - 5)
        instance = lpn.Instance(f"10-local, k = {k}", n, k, t, locality=10)
        share = lpn.chosen_share(instance)
        self.assertLessEqual(len(columns), share * k + CHECKS / 4 + 0.02 * k, "more than the estimator takes")
        self.assertGreaterEqual(len(columns), lpn.least_share(instance) * k, "fewer columns than can exist")
        hits = {0: 0, 2: 0}
        for _ in range(instances):
            secret, noise = rng.getrandbits(k), regular_noise(n, t, rng)
            samples = bytearray((mask & secret).bit_count() & 1 ^ e for mask, e in zip(whole, noise))
            inside = sum(1 << column for column in columns)
            for p in (0, 2) if pairs else (0,):
                for wrong in sub.candidates(samples, p == 2):
                    found = sub.solve(samples, wrong)
                    noisy = sum((masks[row] & found).bit_count() & 1 != samples[row] for row in masks)
                    # A right secret leaves about the noise rate's share, a wrong one a half.
                    if noisy <= len(masks) / 8 and self.right(found, secret & inside, masks):
                        hits[p] += 1
                        break
        for p, count in hits.items():
            if p == 0 or pairs:
                self.compare(count, instances, instance, unknowns, p)

    @staticmethod
    def right(found, secret, masks):
        """Whether the recovered unknowns are the secret's, up to those that no row determines."""
        return all((mask & (found ^ secret)).bit_count() & 1 == 0 for mask in masks.values())

    def test_primal_secrets_of_256_bits(self):
        self.primal(256, 16, 64, 4000, True)

    def test_primal_secrets_of_512_bits(self):
        self.primal(512, 20, 64, 2500, False)

    def accumulate(self, outputs, block, t, instances):
        rng = random.Random(outputs)
        n = 2 * outputs
        # The same draws as `lpn.accumulate_rows` makes, whose blocks the peeling sees.
        state = rng.getstate()
        rows = lpn.accumulate_rows(outputs, block, rng)
        rng.setstate(state)
        place, fold = list(range(n)), list(range(n))
        rng.shuffle(place)
        rng.shuffle(fold)
        at = [0] * n
        for z, position in enumerate(fold):
            at[position] = z
        matrix = [rng.getrandbits(block) for _ in range(outputs)]
        blocks, kept = chosen(rows, outputs // block, 4, block)
        share = lpn.chosen_share(lpn.Instance("", n, outputs, t, accumulate=block))
        self.assertLessEqual(len(blocks) * block, share * outputs + CHECKS + 2 * block)

        def entry(z):
            """The second accumulator's entry z: ones among the unknowns, and the output that is added, if
            any."""
            position = fold[z]
            if position >= outputs:
                return 1 << position - outputs, None
            return matrix[position] << position // block * block, position

        # Row r of `accumulate_rows` is noise position r + 1.
        masks, added = {}, {}
        for row in kept:
            mask, outputs_added = 0, []
            for j in (place[row + 1], place[row]):
                for z in (j, j - 1):
                    if z >= 0:
                        ones, output = entry(z)
                        mask ^= ones
                        outputs_added += [] if output is None else [output]
            masks[row + 1], added[row + 1] = mask, outputs_added
        sub = SubInstance(masks, rng)
        instance = lpn.Instance(f"accumulating, n = {outputs}", n, outputs, t, accumulate=block)
        hits = 0
        for _ in range(instances):
            noise = regular_noise(n, t, rng)
            first, sums, total = [0] * n, [0] * n, 0
            for i in range(n):
                total ^= noise[i]
                first[place[i]] = total
            total = 0
            for z in range(n):
                total ^= first[z]
                sums[z] = total
            lower = sum(sums[at[outputs + i]] << i for i in range(outputs))
            result = bytearray(
                sums[at[i]] ^ (matrix[i] & lower >> i // block * block).bit_count() & 1
                for i in range(outputs)
            )
            samples = {row: sum(result[output] for output in outputs) & 1 for row, outputs in added.items()}
            for wrong in sub.candidates(samples, False):
                hits += self.right(sub.solve(samples, wrong), lower, masks)
        self.compare(hits, instances, instance, len(sub.basis), 0)

    def test_noise_of_an_accumulating_code_of_512_outputs(self):
        self.accumulate(512, 8, 8, 4000)

    def test_noise_of_an_accumulating_code_of_1024_outputs(self):
        self.accumulate(1024, 32, 8, 4000)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len({str(test).split(" (")[0] for test, _ in result.failures + result.errors})
    print(f"{max(0, result.testsRun - failed)} passed, {failed} failed")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
