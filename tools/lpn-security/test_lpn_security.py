#!/usr/bin/env python3
"""Tests of the estimator, and the gate: no parameter set of the library may have less than 128 bits.

The sets come from the library itself (`cargo run -p tacit-ot --example parameter_sets`), not from a copy.
Ends with `N passed, N failed`.
"""

import io
import json
import math
import os
import subprocess
import sys
import unittest
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import lpn_security as lpn

ROOT = Path(__file__).resolve().parent.parent.parent
LEAST = 128


def shipped():
    """The library's sets, as it says them itself."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "run", "--quiet", "--package", "tacit-ot", "--example", "parameter_sets"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sets = shipped()

    def test_the_library_names_its_sets(self):
        names = {entry["name"] for entry in self.sets}
        self.assertTrue({"ferret a", "ferret b", "ferret c", "ferret d", "ferret e"} <= names, names)
        for kind in ["silent quasi-cyclic", "silent linear", "dealt linear", "subfield 256", "vole 2^61 - 1"]:
            self.assertEqual(sum(name.startswith(f"{kind}, n = ") for name in names), 2, names)

    def test_no_shipped_set_is_weak(self):
        for entry in self.sets:
            with self.subTest(entry["name"]):
                bits, attack = lpn.security(lpn.estimate(lpn.parse_set(entry)))
                self.assertGreaterEqual(bits, LEAST, f"{entry['name']}: {attack}")
                if "claimed" in entry:
                    self.assertGreaterEqual(bits + 0.5, entry["claimed"], f"{entry['name']} claims more than it has")

    def test_a_weak_set_is_refused(self):
        weak = dict(self.sets[0], k=self.sets[0]["k"] // 4)
        out, err = io.StringIO(), io.StringIO()
        stdin, sys.stdin = sys.stdin, io.StringIO(json.dumps([weak]))
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = lpn.main(["--sets", "-", "--minimum", str(LEAST), "--json"])
        finally:
            sys.stdin = stdin
        self.assertEqual(code, 1)
        self.assertIn(weak["name"], err.getvalue())
        self.assertLess(json.loads(out.getvalue())[0]["security"], LEAST)


class Reference(unittest.TestCase):
    def test_known_estimates_within_two_bits(self):
        for instance, expected in lpn.REFERENCE:
            if not expected:
                continue
            costs = lpn.estimate(instance)
            costs["security"] = lpn.security(costs)[0]
            for attack, bits in expected.items():
                with self.subTest(f"{instance.name}, {attack}"):
                    self.assertLessEqual(abs(costs[attack] - bits), 2)

    def test_the_hybrid_is_never_worse_than_permutation_alone(self):
        for n, k, t in [(1 << 14, 3482, 338), (1 << 16, 7391, 667)]:
            self.assertLess(lpn.hybrid(n, k, t), lpn.regular_permutation(n, k, t))


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

    def test_sets_from_json(self):
        dual = lpn.parse_set({"name": "x", "N": 200, "n": 100, "t": 10, "quasi_cyclic": True})
        self.assertEqual((dual.dimension, dual.regular, dual.quasi_cyclic), (100, True, True))
        self.assertEqual(lpn.parse_set({"name": "x", "N": 200, "n": 100, "t": 10, "field": 4}).field, 4)
        for broken in [
            {"name": "x", "N": 200, "k": 100, "t": 10, "field": 6},
            {"name": "x", "N": 200, "t": 10},
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
