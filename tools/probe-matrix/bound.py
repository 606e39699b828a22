#!/usr/bin/env python3
"""Columns that a rho-probe matrix [M | I_k] needs, by the union bound of WMK17, section 4.1, in exact arithmetic.

    python3 bound.py [--rho 40] [K ...]

For each chunk size k: the least number w of random columns with
    sum over i = 1..k of C(k, i) * Pr[Bin(w, 1/2) <= rho - i - 1]  <=  2^-rho,
the factor c = 1 + w/k of the paper's Table 3, and log2 of the bound at w.
"""

import argparse
from fractions import Fraction
from math import comb, log2


def failure(k: int, w: int, rho: int) -> Fraction:
    """The chance, at most, that some XOR of rows has a weight below rho."""
    below, total = [], 0
    for t in range(rho):
        total += comb(w, t)
        below.append(total)
    ways = sum(comb(k, i) * below[rho - 1 - i] for i in range(1, min(k, rho - 1) + 1))
    return Fraction(ways, 2**w)


def width(k: int, rho: int) -> int:
    """The least w that keeps the bound; the bound falls as w grows."""
    low, high = 0, 8 * rho + 2 * k
    while low < high:
        middle = (low + high) // 2
        if failure(k, middle, rho) <= Fraction(1, 2**rho):
            high = middle
        else:
            low = middle + 1
    return low


def main() -> None:
    """Prints one line a chunk size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rho", type=int, default=40)
    parser.add_argument("k", type=int, nargs="*", default=[1, 2, 8, 32, 40, 65, 80, 103, 116, 128, 143, 174, 200, 229, 232, 256, 300, 347])
    options = parser.parse_args()
    for k in options.k:
        w = width(k, options.rho)
        bound = failure(k, w, options.rho)
        print(f"k = {k:4}  w = {w:4}  c = {1 + w / k:.2f}  log2 = {log2(bound.numerator) - log2(bound.denominator):.2f}")


if __name__ == "__main__":
    main()
