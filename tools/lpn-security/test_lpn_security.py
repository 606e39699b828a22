#!/usr/bin/env python3
"""Tests of the estimator, and the gate: no parameter set of the library may have less than 136 bits.

The sets come from the library itself (`cargo run -p tacit-ot --example parameter_sets`), not from a copy.
Ends with `N passed, N failed`.
"""

import io
import itertools
import json
import math
import os
import random
import subprocess
import sys
import unittest
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import lpn_security as lpn

ROOT = Path(__file__).resolve().parent.parent.parent
LEAST = 136
# Kept for comparison, and shown, whatever their security.
PAPERS = {"ferret paper", "ferret paper-setup", "ferret-uni paper", "ferret-uni paper-setup"}


def shipped():
    """The library's sets, as it says them itself: by the example that the run of the other tests has built just now."""
    built = Path(os.environ["TACIT"]).parent / "examples" / "parameter_sets" if "TACIT" in os.environ else None
    if built and built.exists():
        return json.loads(subprocess.run([built], check=True, stdout=subprocess.PIPE, text=True).stdout)
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "run", "--quiet", "--package", "tacit-ot", "--example", "parameter_sets"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def reports(sets):
    """The estimator's results for sets in JSON, on all cores."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(lpn.report, map(lpn.parse_set, sets)))


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sets = shipped()
        cls.reports = reports(cls.sets)

    def test_the_library_names_its_sets(self):
        names = {entry["name"] for entry in self.sets}
        self.assertTrue({f"ferret {name}" for name in "abcde"} <= names, names)
        self.assertTrue({f"ferret-uni {name}" for name in ("main", "a", "b", "setup")} <= names, names)
        for kind in ["silent quasi-cyclic", "silent linear", "dealt linear", "subfield 256", "vole 2^61 - 1", "vole 2^128"]:
            self.assertEqual(sum(name.startswith(f"{kind}, n = ") for name in names), 2, names)

    def test_sets_say_what_their_codes_are(self):
        for entry in self.sets:
            name = entry["name"]
            with self.subTest(name):
                self.assertEqual(entry.get("locality"), 10 if name.startswith("ferret") else None)
                linear = name.startswith(("subfield", "vole")) or " linear," in name
                self.assertEqual(entry.get("accumulate"), 32 if linear else None)
                self.assertEqual(entry.get("paper", False), name in PAPERS)
                # A binary code takes values of 8 bits at most.
                field = entry.get("field", 2)
                self.assertTrue(field % 2 or field <= 256 or entry.get("scaled"))

    def test_no_shipped_set_is_weak(self):
        for result, entry in zip(self.reports, self.sets):
            with self.subTest(result["name"]):
                self.assertIsNone(lpn.weakness(result, LEAST))
                if "claimed" in entry:
                    least = result["security"]
                    if not result.get("paper"):
                        least = min(least, result.get("bound", least))
                    self.assertLessEqual(entry["claimed"], least + 0.5, "claims more than it has")
        for result in self.reports:
            bound = result.get("bound", "-")
            print(f"{result['name']}: {result['security']} ({result['attack']}), bound {bound}")

    def test_the_page_has_the_sets_and_their_figures(self):
        page = (ROOT / "docs" / "lpn-security.md").read_text(encoding="utf-8").splitlines()
        for result in self.reports:
            if not result.get("paper"):
                with self.subTest(result["name"]):
                    rows = [line.split("|") for line in page if line.startswith(f"| {result['name']} |")]
                    self.assertEqual(len(rows), 1, f"the page lacks {result}")
                    cells = [cell.strip().replace(",", "") for cell in rows[0]]
                    figures = [result["security"], result.get("bound", result["security"]), result["quantum"]]
                    expected = {str(result["t"]), *(f"{figure:.1f}" for figure in figures)}
                    self.assertLessEqual(expected, set(cells), f"the page has other figures than {result}")

    def test_a_weak_set_is_refused(self):
        weak = next(entry for entry in self.sets if entry["name"] == "ferret e")
        for change in [{"k": weak["k"] // 2}, {"t": weak["t"] // 2}, {"k": weak["k"] * 31 // 32}]:
            code, out, err = self.gate([dict(weak, **change)])
            self.assertEqual(code, 1)
            self.assertIn(weak["name"], err)
            result = json.loads(out)[0]
            self.assertLess(min(result["security"], result["bound"]), LEAST)
        # Earlier sets are refused for the local attack alone.
        before = {"name": "a", "N": 10_649_600, "k": 1 << 19, "t": 1300}
        self.assertEqual(self.gate([before | {"locality": 10}])[0], 1)
        self.assertEqual(self.gate([before | {"locality": 10, "paper": True}])[0], 0)

    @staticmethod
    def gate(sets):
        out, err = io.StringIO(), io.StringIO()
        stdin, sys.stdin = sys.stdin, io.StringIO(json.dumps(sets))
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = lpn.main(["--sets", "-", "--minimum", str(LEAST), "--json"])
        finally:
            sys.stdin = stdin
        return code, out.getvalue(), err.getvalue()


class Quantum(unittest.TestCase):
    def test_grover_halves_the_trials_and_not_the_elimination(self):
        instance = lpn.parse_set({"name": "a", "N": 11_141_120, "k": 1_015_808, "t": 1360, "locality": 10})
        unknowns, weight = lpn.local_unknowns(instance, None), lpn.row_weight(instance)
        trial = lpn.log2_sum(lpn.checks_cost(unknowns, 8, weight), 1 + math.log2(unknowns))
        trials = -lpn.halves_chance(instance, unknowns, 0)
        for quantum, expected in [(False, trial + trials), (True, trial + trials / 2)]:
            bits = lpn.few_samples(instance, unknowns, weight, most=0, quantum=quantum)
            self.assertAlmostEqual(bits, expected)
        self.assertLess(lpn.quantum(instance), trial + trials / 2)
        # Instances of one matrix are searched together, and share nothing else.
        four = lpn.few_samples(replace(instance, instances=4), unknowns, weight, most=0, quantum=True)
        self.assertAlmostEqual(four, trial + trials / 2 - 1)


class Reference(unittest.TestCase):
    def test_known_estimates_within_two_bits(self):
        known = [(instance, expected) for instance, expected in lpn.REFERENCE if expected]
        with ProcessPoolExecutor() as pool:
            results = list(pool.map(lpn.estimate, [instance for instance, _ in known]))
        for (instance, expected), costs in zip(known, results):
            published = [costs[name] for name in [*lpn.ANYWHERE, *lpn.REGULAR] if name in costs]
            costs["published"] = min(published)
            for attack, bits in expected.items():
                with self.subTest(f"{instance.name}, {attack}"):
                    self.assertLessEqual(abs(costs[attack] - bits), 2)

    def test_local_codes_of_the_literature_fall(self):
        """With one elimination for each trial, dense or sparse, and further with lists."""
        for instance, _ in lpn.REFERENCE:
            if instance.locality and not instance.name.startswith(("D ", "E ")):
                with self.subTest(instance.name):
                    dense = lpn.few_samples(instance, lpn.local_unknowns(instance, None), None, most=0)
                    sparse = lpn.local_gauss(instance)
                    self.assertTrue(87 <= sparse <= dense <= 120, (sparse, dense))
                    self.assertLess(lpn.local_isd(instance), sparse - 8)

    def test_the_hybrid_is_never_worse_than_permutation_alone(self):
        for n, k, t in [(1 << 14, 3482, 338), (1 << 16, 7391, 667)]:
            self.assertLess(lpn.hybrid(n, k, t), lpn.regular_permutation(n, k, t))


class Columns(unittest.TestCase):
    def test_peeling_gives_the_table_again(self):
        for ratio in (4.0, 11.314, 22.627):
            share = lpn.peel(lpn.local_rows(1 << 11, ratio, 10, random.Random(5)), 1 << 11, 10)
            self.assertAlmostEqual(share, lpn.PEELED[10][ratio], delta=0.012)
        share = lpn.peel(lpn.accumulate_rows(1 << 12, 32, random.Random(5)), 1 << 7, 4, 32)
        self.assertAlmostEqual(share, lpn.PEELED_ACCUMULATE[32], delta=0.025)

    def test_the_products_permutations_are_ones_and_peel_as_random_ones(self):
        for length in (64, 192, 1 << 9, 108_544):
            inverse = lpn.feistel_inverse(length, random.Random(length))
            self.assertEqual(sorted(inverse), list(range(length)))
            self.assertLess(sum(x == image for x, image in enumerate(inverse)), 12)
        rows = lpn.accumulate_rows(1 << 12, 32, random.Random(6), True)
        self.assertAlmostEqual(lpn.peel(rows, 1 << 7, 4, 32), lpn.PEELED_ACCUMULATE[32], delta=0.025)

    def test_peeling_leaves_as_many_rows_as_unknowns(self):
        """On rows of three, against a plain loop that counts."""
        rng = random.Random(9)
        rows = [rng.sample(range(60), 3) for _ in range(240)]
        left, kept = set(range(60)), rows
        share = lpn.peel(lpn.array("I", sum(rows, [])), 60, 3)
        while True:
            # Columns of least degree may be several; the share may differ by one or two.
            column = min(left, key=lambda c: sum(c in row for row in kept))
            fewer = [row for row in kept if column not in row]
            if len(fewer) < len(left) - 1:
                break
            left, kept = left - {column}, fewer
        self.assertGreaterEqual(len(kept), len(left))
        self.assertLess(len(left), 50)
        self.assertAlmostEqual(share, len(left) / 60, delta=3 / 60)

    def test_a_locality_without_a_table_is_peeled(self):
        local = lpn.Instance("", 1 << 18, 1 << 14, 512, locality=7)
        share = lpn.chosen_share(local)
        self.assertTrue(lpn.least_share(local) < share < 16 ** (-1 / 6))
        # More ones a row, more columns.
        self.assertGreater(lpn.chosen_share(lpn.Instance("", 1 << 18, 1 << 14, 512, locality=10)), share)

    def test_first_moment_against_the_sum(self):
        """The expected number of choices, from binomials, at 3000 columns."""
        k, ratio, d = 3000, 16, 10
        n = k * ratio

        def log_expected(s):
            chance = (s / k) ** d
            tail = [
                lpn.log2_binomial(n, rows) + rows * math.log2(chance) + (n - rows) * math.log2(1 - chance)
                for rows in range(s, s + 400)
            ]
            return lpn.log2_binomial(k, s) + lpn.log2_sum(*tail)

        least = next(s for s in range(1000, k) if log_expected(s) >= 0)
        self.assertAlmostEqual(least / k, lpn.first_moment_share(ratio, d), delta=0.004)

    def test_nothing_is_chosen_in_other_codes(self):
        quasi_cyclic = lpn.Instance("", 1 << 16, 1 << 15, 64, quasi_cyclic=True)
        for other in [lpn.Instance("", 1 << 16, 1 << 12, 64), quasi_cyclic]:
            self.assertEqual((lpn.chosen_share(other), lpn.bound(other)), (None, None))
            self.assertFalse({*lpn.LOCAL, "interleaved"} & set(lpn.estimate(other)))


class FewSamples(unittest.TestCase):
    def test_chances_against_every_noise(self):
        """Windows of regular noise spread evenly, and of uniform noise, by counting all positions."""
        regular = lpn.Instance("", 24, 6, 4)
        # Two positions of each block of six are in the window, one in each half.
        counts = {}
        for places in itertools.product(range(6), repeat=4):
            halves = [places.count(half) for half in (0, 1)]
            if halves[0] == halves[1]:
                counts[sum(halves)] = counts.get(sum(halves), 0) + 1
        self.assertAlmostEqual(2 ** lpn.halves_chance(regular, 8, 0), counts[0] / 6**4)
        for p in (2, 4):
            # Words with two in a block are counted, which never occur.
            ratio = 2 ** lpn.halves_chance(regular, 8, p) / (counts[p] / 6**4)
            self.assertTrue(1 <= ratio < 1.5, ratio)
        uniform = lpn.Instance("", 14, 5, 4, False)
        for p in (0, 2, 4):
            ways = sum(
                sum(place < 3 for place in places) == p // 2 == sum(3 <= place < 6 for place in places)
                for places in itertools.combinations(range(14), 4)
            )
            self.assertAlmostEqual(2 ** lpn.halves_chance(uniform, 6, p), ways / math.comb(14, 4))

    def test_no_errors_cost_elimination_over_chance(self):
        n, k, t = 1 << 20, 1 << 15, 2048
        instance = lpn.Instance("", n, k, t, locality=10)
        unknowns = int(lpn.chosen_share(instance) * k)
        solve = 2 * math.log2(unknowns) + math.log2(20 + 8**0.8)
        chance = t * math.log2(1 - unknowns / n)
        self.assertAlmostEqual(lpn.local_gauss(instance), solve - chance, delta=0.01)

    def test_instances_share_the_elimination_and_nothing_else(self):
        def gauss(instances):
            return lpn.local_gauss(lpn.Instance("", 1 << 20, 1 << 15, 2048, locality=10, instances=instances))

        self.assertAlmostEqual(gauss(1) - gauss(4), 2, delta=0.01)
        instance = lpn.Instance("", 1 << 20, 1 << 15, 2048, locality=10)
        unknowns = int(lpn.chosen_share(instance) * (1 << 15))
        check = 1 + math.log2(unknowns) - 2048 * math.log2(1 - unknowns / (1 << 20))
        self.assertAlmostEqual(gauss(1 << 200), check, delta=0.01)
        for attack in (lpn.local_isd, lpn.pooled_isd, lpn.local_hybrid):
            bits = [attack(replace(instance, instances=count)) for count in (1, 4, 1024)]
            self.assertEqual(bits, sorted(bits, reverse=True))
            self.assertLessEqual(bits[0] - bits[2], 10.01)

    def test_the_bound_is_below_the_attack(self):
        for k, t, depth in [(1 << 15, 1080, 8), (1 << 17, 1200, 10)]:
            instance = lpn.Instance("", t << depth, k, t, locality=10, instances=4)
            gap = lpn.local_isd(instance) - lpn.bound(instance)
            self.assertTrue(4 < gap < 12, gap)

    def test_local_hybrid_against_every_guess(self):
        """Nothing beats the search at the ends of its grid, where the numbers of rows are exact."""
        n, k, t = 1 << 14, 1 << 10, 512
        instance = lpn.Instance("", n, k, t, locality=10)
        found = lpn.local_hybrid(instance)
        for share, rows in ((1.0, n), (lpn.chosen_share(instance), None)):
            unknowns = share * k
            rows = rows or unknowns
            for guessed in range(int(unknowns) + 1):
                free = unknowns - guessed
                if guessed < rows and free * free / 2 + free <= max((rows - guessed) ** 2 / (2 * t), 1):
                    once = lpn.checks_cost(unknowns, 1, 10)
                    work = lpn.log2_sum(once, 4 * lpn.log2_positive(free) - 2, 1 + math.log2(unknowns))
                    self.assertGreaterEqual(work - t * math.log2(1 - guessed / n), found - 0.05)


class Interleaved(unittest.TestCase):
    def instance(self, bits, weight=424):
        return lpn.Instance("", 108_544, 54_272, weight, distance=0.20, field=1 << bits, accumulate=32)

    def test_many_bits_break_a_binary_code(self):
        costs = [lpn.interleaved(self.instance(bits)) for bits in (2, 4, 8, 16, 32, 64, 128)]
        self.assertEqual(costs[2:], sorted(costs[2:], reverse=True))
        self.assertGreater(costs[2], 136)
        self.assertLess(costs[-1], 60)

    def test_more_words_than_noise_are_linear_algebra(self):
        """424 words and more cost one elimination."""
        self.assertLess(lpn.interleaved(self.instance(512)), 45)

    def test_as_many_words_as_noise_give_the_noise_away(self):
        """The attack itself: 40 words of a code with 20 noisy positions, by linear algebra alone."""
        rng = random.Random(3)
        checks, positions, words = 128, 256, 40
        columns = [rng.getrandbits(checks) for _ in range(positions)]
        noisy = {rng.randrange(block * 16 + 4, block * 16 + 16) for block in range(16)} | {0, 1, 2, 3}
        span = {}

        def reduced(vector):
            while vector and vector.bit_length() in span:
                vector ^= span[vector.bit_length()]
            return vector

        for _ in range(words):
            syndrome = 0
            for position in noisy:
                syndrome ^= columns[position] * rng.getrandbits(1)
            if vector := reduced(syndrome):
                span[vector.bit_length()] = vector
        self.assertEqual({i for i, column in enumerate(columns) if not reduced(column)}, noisy)

    def test_rank_against_all_values(self):
        """With three values of GF(4) the checks of both words are independent but for the chance that is
        counted."""
        q, m, hits = 4, 2, 3
        dependent = sum(
            len({0} | set(values)) <= 2 for values in itertools.product(range(1, q), repeat=hits)
        ) / (q - 1) ** hits
        counted = 2 ** (m + hits * math.log2((q / 2 - 1) / (q - 1)))
        self.assertLessEqual(dependent, counted)
        self.assertLess(counted, 1.4 * dependent)


class Parts(unittest.TestCase):
    def test_binomials(self):
        for n, m in [(10, 3), (100, 50), (3000, 7), (5, 0)]:
            self.assertAlmostEqual(lpn.log2_binomial(n, m), math.log2(math.comb(n, m)), places=8)
        self.assertEqual(lpn.log2_binomial(3, 4), -math.inf)

    def test_log2_sum(self):
        self.assertAlmostEqual(lpn.log2_sum(3, 3, 4), 5)
        self.assertEqual(lpn.log2_sum(-math.inf, -math.inf), -math.inf)

    def test_minimise_finds_the_bottom(self):
        for bottom in [0, 1, 777, 99_999]:
            self.assertEqual(lpn.minimise(lambda i: abs(i - bottom), 0, 100_000), (0, bottom))

    def test_hilbert_series_against_fractions(self):
        n, k, t = 240, 60, 12
        system = lpn.Macaulay(n, k, t)
        # (1 + 19z)^12 / (1 + z)^179, by division of polynomials.
        top = [Fraction(math.comb(12, i) * 19**i) for i in range(5)]
        bottom = [Fraction(math.comb(179, i)) for i in range(5)]
        quotient = []
        for d in range(5):
            quotient.append(top[d] - sum(bottom[i] * quotient[d - i] for i in range(1, d + 1)))
        self.assertEqual(system.times(system.monomials(0, 0), system.relations), quotient)

    def test_hybrid_against_every_number_of_guesses(self):
        for n, k, t in [(1024, 652, 57), (4096, 1589, 172)]:
            m, r = lpn.truncated(n, k, t)
            everywhere = min(
                lpn.hybrid_cost(m, r, t, enumerated, guessed)
                for enumerated in range(0, 20)
                for guessed in range(0, r - t - (m // t - 1) * enumerated + 1)
            )
            self.assertAlmostEqual(lpn.hybrid(n, k, t), everywhere, delta=0.05)

    def test_second_algebraic_attack_against_every_pair(self):
        n, k, t = 1024, 400, 64
        system = lpn.Macaulay(n, k, t)
        pairs = [(f, mu) for f in range(1, t + 1) for mu in range(0, min(k // f, n // t - 1) + 1)]
        firsts = [system.guess(f, mu) for f, mu in pairs if system.degree(f, mu, True) == 2]
        self.assertTrue(firsts)
        found = min(
            system.guess(f, mu)
            for f in range(1, t + 1)
            if (mu := system.least_guess(f, 2, True)) is not None
        )
        self.assertAlmostEqual(found, min(firsts))

    def test_more_secret_is_harder_and_more_samples_are_easier(self):
        base = lpn.security(lpn.estimate(lpn.Instance("", 1 << 16, 9000, 512)))[0]
        self.assertGreater(lpn.security(lpn.estimate(lpn.Instance("", 1 << 16, 9500, 512)))[0], base)
        self.assertLess(lpn.security(lpn.estimate(lpn.Instance("", 1 << 17, 9000, 512)))[0], base)

    def test_noise_over_larger_fields_projects_to_lighter_noise(self):
        def instance(weight, field):
            return lpn.Instance("", 1 << 16, 1 << 15, weight, distance=0.20, field=field)

        self.assertEqual(instance(176, 2).projected(), instance(176, 2))
        # Three projections of GF(4) keep two thirds each, 255 of GF(256) about half.
        self.assertTrue(180 <= instance(288, 4).projected().weight <= 192)
        self.assertTrue(160 <= instance(400, 256).projected().weight <= 201)
        for weight, field in [(176, 4), (176, 256)]:
            self.assertLess(lpn.linear_test(instance(weight, field)), lpn.linear_test(instance(weight, 2)))
        # A hit of weight one of GF(4): values 1, 2 and 3 under the trace that maps 1 to 0.
        bias = sum((-1) ** (value > 1) for value in (1, 2, 3)) / 3
        expected = -288 * math.log2(0.8 + 0.2 * bias)
        self.assertAlmostEqual(lpn.linear_test(instance(288, 4)), expected)

    def test_noise_over_a_prime_field_has_no_projection(self):
        prime = lpn.Instance("", 1 << 16, 1 << 15, 400, distance=0.20, field=(1 << 61) - 1)
        self.assertEqual((prime.projected().weight, prime.projected().regular), (400, True))
        self.assertAlmostEqual(lpn.linear_test(prime), -400 * math.log2(0.8), places=6)

    def test_a_code_with_factors_of_the_field_has_no_projection(self):
        binary = lpn.Instance("", 108_544, 54_272, 424, distance=0.20, field=1 << 128, accumulate=32)
        scaled = replace(binary, scaled=True)
        self.assertEqual((binary.degree, scaled.degree), (128, 1))
        self.assertEqual((scaled.projected().weight, scaled.projected().regular), (424, True))
        self.assertLess(lpn.interleaved(binary), 64)
        self.assertGreaterEqual(lpn.linear_test(scaled), LEAST)

    def test_sets_from_json(self):
        dual = lpn.parse_set({"name": "x", "N": 200, "n": 100, "t": 10, "quasi_cyclic": True})
        self.assertEqual((dual.dimension, dual.regular, dual.quasi_cyclic), (100, True, True))
        self.assertEqual(lpn.parse_set({"name": "x", "N": 200, "n": 100, "t": 10, "field": 4}).field, 4)
        shared = {"locality": 10, "instances": 4, "paper": True}
        local = lpn.parse_set({"name": "x", "N": 200, "k": 50, "t": 10} | shared)
        self.assertEqual((local.locality, local.instances, local.paper), (10, 4, True))
        accumulating = lpn.parse_set({"name": "x", "N": 200, "n": 100, "t": 10, "accumulate": 32})
        self.assertEqual(accumulating.accumulate, 32)
        for broken in [
            {"name": "x", "N": 200, "k": 100, "t": 10, "field": 6},
            {"name": "x", "N": 200, "t": 10},
            {"name": "x", "N": 200, "k": 50, "t": 10, "locality": 1},
            {"name": "x", "N": 200, "k": 50, "t": 10, "accumulate": 32},
            {"name": "x", "N": 200, "k": 50, "t": 10, "instances": 0},
            {"name": "x", "N": 200, "k": 200, "t": 10},
            {"name": "x", "N": 200, "k": 100, "t": 0},
            {"name": "x", "N": 200, "k": 100, "t": 10, "noise": "loud"},
            [],
        ]:
            with self.assertRaises(ValueError):
                lpn.parse_set(broken)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len({str(test).split(" (")[0] for test, _ in result.failures + result.errors})
    print(f"{max(0, result.testsRun - failed)} passed, {failed} failed")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
