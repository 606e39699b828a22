"""The exact values of the games of `alike.py` against the bounds of `docs/proofs/authenticated.md`.

Ends with `N passed, N failed`.
"""

import sys
import traceback
from fractions import Fraction
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from alike import FORMS, Evaluator, Garbler, Session  # noqa: E402
from games import solve, strategy, uniform  # noqa: E402


class Urn:
    """A game to try the solver by: one of `n`, so many guesses, and whether a guess was too large is told."""

    def __init__(self, n, guesses):
        self.n, self.guesses = n, guesses

    def states(self):
        return uniform(range(self.n))

    def choices(self, history):
        over = len(history) == self.guesses or any(answer == 0 for _, answer in history)
        return [] if over else range(self.n)

    def answer(self, state, history, choice):
        return (choice > state) - (choice < state)

    def score(self, state, history):
        return int(history[-1][0] == state)


def test_the_solver_searches_as_well_as_can_be():
    # So many guesses tell 2^guesses - 1 numbers apart, and no strategy more.
    for n in range(1, 9):
        for guesses in (1, 2, 3):
            assert solve(Urn(n, guesses)) == Fraction(min(n, 2**guesses - 1), n), (n, guesses)
    best = strategy(Urn(3, 2))
    assert best[()] == 1 and best[((1, 1),)] == 0 and best[((1, -1),)] == 2


def guesses(digest, bits):
    """Digests that are as likely, by so many bits that are guessed of x, and the digest by the secret."""
    secrets = list(product((0, 1), repeat=digest))[: 2**bits]
    return secrets, lambda secret, delta: secret


def of_delta(digest, bits):
    """One secret, of which the digest is Δ's lower bits but the lowest: a wrong product, of which so many count."""
    return [None], lambda secret, delta: tuple(delta >> (1 + i) & 1 if i < bits else 0 for i in range(digest))


def page(bits, of_pairs, queries):
    """The page's bound (section 3): the digest's guess, and a guess of digest and Δ together, once and by queries."""
    return Fraction(1, 2**bits) + (queries + 1) * Fraction(1, of_pairs)


SIZES = [(2, 2, 1), (2, 2, 2), (2, 3, 1), (2, 3, 2), (3, 2, 1), (3, 2, 3), (2, 4, 2)]


def test_a_garbler_has_a_second_guess_for_free_in_v7():
    for digest, delta, bits in SIZES:
        value = solve(Garbler("v7", digest, delta, *guesses(digest, bits)))
        assert value == Fraction(2, 2**bits), (digest, delta, bits, value)
    # One bit is never caught.
    assert solve(Garbler("v7", 2, 2, *guesses(2, 1), whole=True)) == 1


def test_a_garbler_has_one_guess_where_its_proof_is_of_what_it_padded():
    for form in ("both", "shipped"):
        for digest, delta, bits in SIZES:
            if form == "both" and digest * delta > 6:
                continue
            value = solve(Garbler(form, digest, delta, *guesses(digest, bits)))
            assert value == page(bits, 2**bits * 2 ** (delta - 1), 0), (form, digest, delta, bits, value)
        whole = solve(Garbler(form, 2, 2, *guesses(2, 1), whole=True))
        assert whole == page(1, 2 * 2, 0), (form, whole)


def test_what_a_garbler_asks_the_hash_counts_as_the_page_says():
    for digest, delta, bits, queries in [(2, 2, 2, 1), (2, 3, 1, 1), (2, 3, 2, 1), (2, 2, 2, 2)]:
        value = solve(Garbler("shipped", digest, delta, *guesses(digest, bits), queries=queries))
        assert value == page(bits, 2**bits * 2 ** (delta - 1), queries), (digest, delta, bits, queries, value)


def test_a_wrong_product_passes_by_a_guess_of_the_bits_that_count_and_in_v7_by_two():
    for digest, delta, bits in [(2, 3, 1), (2, 3, 2), (2, 4, 2), (2, 4, 1)]:
        value = solve(Garbler("shipped", digest, delta, *of_delta(digest, bits)))
        assert value == page(bits, 2 ** (delta - 1), 0), (digest, delta, bits, value)
        assert solve(Garbler("v7", digest, delta, *of_delta(digest, bits))) == Fraction(2, 2**bits)


def test_an_evaluator_has_one_guess_but_where_it_proves_second():
    for digest, bits in [(2, 1), (2, 2), (3, 2), (3, 3)]:
        secrets, _ = guesses(digest, bits)
        for form in FORMS:
            value = solve(Evaluator(form, digest, secrets))
            assert value == Fraction(2 if form == "swapped" else 1, 2**bits), (form, digest, bits, value)
    for digest, delta, bits in SIZES:
        # And so the oracle has moved, not gone: the garbler of that order has one guess.
        assert solve(Garbler("swapped", digest, delta, *guesses(digest, bits))) == Fraction(1, 2**bits)


def bound(buckets, rows):
    """The page's bound of a window (6.1)."""
    return Fraction(1, 2**rows * buckets ** (rows - 1))


def test_a_window_is_broken_as_often_as_the_page_says():
    for buckets, checks in [(2, [2]), (3, [2]), (2, [3]), (2, [2, 1]), (2, [1, 1])]:
        value = solve(Session("shipped", buckets, checks))
        assert value == bound(buckets, sum(checks)), (buckets, checks, value)
    assert solve(Session("shipped", 2, [2], signs=True)) == bound(2, 2)


def test_a_window_was_broken_more_often_in_v7():
    # Twice in each check; of two checks in both.
    for buckets, checks in [(2, [2]), (2, [1, 1]), (2, [2, 1])]:
        value = solve(Session("v7", buckets, checks))
        assert value == bound(buckets, sum(checks)) * 2 ** len(checks), (buckets, checks, value)


def test_all_windows_together_are_broken_as_often_as_the_page_says():
    for buckets, checks, windows in [(2, [2], 2), (2, [1, 1], 2)]:
        rows, first = sum(checks), checks[0]
        most = bound(buckets, rows) / (1 - Fraction(1, 2**first))
        value = solve(Session("shipped", buckets, checks, windows))
        # A second window is worth a try, and never all of the bound is reached (6.2).
        assert bound(buckets, rows) < value <= most, (buckets, checks, windows, value)


def main():
    passed = failed = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_") and callable(test):
            try:
                test()
                passed += 1
            except Exception:
                failed += 1
                print(f"{name}:")
                traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
