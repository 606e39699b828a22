#!/usr/bin/env python3
"""Hardness and failure probability of the key exchange's parameter sets, from the standard library alone.

Hardness is core-SVP: one call of a lattice sieve in the block size that the attack needs, 2^(0.292 b) classically and
2^(0.265 b) quantumly, memory free. Two attacks are counted, primal (unique SVP, success condition of Alkim, Ducas,
Pöppelmann and Schwabe, 2015/1092) and dual (the distinguisher of the same paper), each at its best number of samples.

Failure is the expected number of key bits in which the two sides differ: the exact law of a coefficient of k_S − k_R,
by a discrete Fourier transform of the tilted law so that the far tail keeps its digits, and the chance that a
difference flips the bit.

"One chosen slot" counts what a malicious receiver learns beyond the public value: it picks p⁰ freely, so that the
signal of slot 0 tells it one bit on each reconciled coefficient of s_S: that bit is taken to be the best of those
listed in `hints`.

Usage: rlwe_security.py            prints the table of docs/post-quantum.md
       rlwe_security.py --check    exits with 1 unless every default passes the bar
       rlwe_security.py --whole    the slot again, if its bits told as many coefficients of s_S as they can, outright
       rlwe_security.py --tables   prints the sampler's cumulative table
"""

import cmath
import math
import sys
from decimal import Decimal, getcontext


class Noise:
    """A symmetric law: `half[x]` = Pr[X = x] for x ≥ 0."""

    def __init__(self, name, half):
        self.name, self.half = name, half
        total = half[0] + 2 * sum(half[1:])
        assert abs(total - 1) < 1e-12, total
        self.sigma = math.sqrt(2 * sum(x * x * p for x, p in enumerate(half)))

    def law(self):
        return {x: self.half[abs(x)] for x in range(1 - len(self.half), len(self.half))}


def gaussian_table(sigma=2, bits=31):
    """⌊2^bits·Pr[|X| ≤ k]⌋ for k = 0 …, until the table reaches 2^bits − 1."""
    getcontext().prec = 60
    weights = [(Decimal(-k * k) / (2 * sigma * sigma)).exp() for k in range(40 * sigma)]
    total, sum_to, out = 2 * sum(weights) - weights[0], Decimal(0), []
    for k, weight in enumerate(weights):
        sum_to += weight * (1 if k == 0 else 2)
        out.append(int(sum_to / total * 2**bits))
        if out[-1] >= 2**bits - 1:
            return out
    raise ValueError("the table does not end")


def table_noise(name, table, bits=31):
    ends = table + [2**bits]
    mass = [(end - start) / 2**bits for start, end in zip([0] + table, ends)]
    return Noise(name, [mass[0]] + [p / 2 for p in mass[1:]])


BINOMIAL2 = Noise("centred binomial, η = 2", [6 / 16, 4 / 16, 1 / 16])
GAUSSIAN2 = table_noise("Gaussian, σ = 2", gaussian_table())


class Set:
    def __init__(self, name, degree, rank, q, noise, key_bits, role):
        self.name, self.degree, self.rank, self.q = name, degree, rank, q
        self.noise, self.key_bits, self.role = noise, key_bits, role

    def wire_bytes(self):
        bits = self.q.bit_length()
        return 2 * self.rank * self.degree * bits // 8 + 2 * self.key_bits // 8 + 32


SETS = [
    Set("module-3-256-7681", 256, 3, 7681, BINOMIAL2, 256, "default"),
    Set("ring-1024-12289", 1024, 1, 12289, BINOMIAL2, 256, "alternative"),
    Set("ring-512-13313", 512, 1, 13313, GAUSSIAN2, 512, "paper"),
]

CLASSICAL, QUANTUM, PLAUSIBLE = 0.292, 0.265, 0.2075


def log_delta(b):
    return math.log((math.pi * b) ** (1 / b) * b / (2 * math.pi * math.e)) / (2 * (b - 1))


def primal_block(q, sigma_error, secrets, samples):
    """Least block size of the primal attack; `secrets` lists (number, σ) of the unknown coefficients."""
    n = sum(count for count, _ in secrets)
    scale = sum(count * math.log(sigma) for count, sigma in secrets)

    def works(b):
        for m in range(max(1, b - n), samples + 1):
            d = n + m + 1
            volume = (m * math.log(q / sigma_error) - scale) / d
            if math.log(b) / 2 <= (2 * b - d - 1) * log_delta(b) + volume:
                return True
        return False

    low, high = 50, 50
    while not works(high):
        high *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle + 1, high)
    return low


def dual_cost(q, sigma, n, samples, exponent):
    """Least log2 cost of the dual attack and its block size."""
    best = (math.inf, 0)
    for b in range(50, n):
        for m in range(max(1, b - n), samples + 1, 4):
            d = m + n
            length = (d - 1) * log_delta(b) + n / d * math.log(q)
            tau = math.exp(length) * sigma / q
            log_epsilon = 2 - 2 * math.pi**2 * tau**2 / math.log(2)
            repeat = max(0.0, -2 * log_epsilon - PLAUSIBLE * b)
            best = min(best, (exponent * b + repeat, b))
        if exponent * b > best[0]:
            break
    return best


def hardness(s):
    n, samples = s.degree * s.rank, s.degree * (s.rank + 1)
    block = primal_block(s.q, s.noise.sigma, [(n, s.noise.sigma)], samples)
    classical, dual_block = dual_cost(s.q, s.noise.sigma, n, samples, CLASSICAL)
    quantum, _ = dual_cost(s.q, s.noise.sigma, n, samples, QUANTUM)
    return {
        "primal block": block,
        "dual block": dual_block,
        "classical": min(CLASSICAL * block, classical),
        "quantum": min(QUANTUM * block, quantum),
    }


def hints(s):
    """What one bit on each of `key_bits` coefficients leaves unknown, as lists for `primal_block`.

    Parity comes of p⁰ = ⌊q/2⌋: then s is 2s' + known, of half the width. For the binomial law p⁰ a little over q/4
    tells zero from nonzero: three eighths of the coefficients are known, the others have variance 8/5.
    """
    n, sigma = s.degree * s.rank, s.noise.sigma
    rest = [(n - s.key_bits, sigma)] if n > s.key_bits else []
    yield rest + [(s.key_bits, sigma / 2)]
    if s.noise is BINOMIAL2:
        unknown = s.key_bits * 5 // 8
        yield rest + [(unknown, math.sqrt(8 / 5))]


def chosen_slot(s):
    blocks = [primal_block(s.q, s.noise.sigma, h, s.degree * (s.rank + 1)) for h in hints(s)]
    return CLASSICAL * min(blocks), QUANTUM * min(blocks)


def whole_coefficients(s):
    """What is left if `key_bits` bits tell coefficients outright, as many as their entropy allows: (number, classical, quantum)."""
    n, entropy = s.degree * s.rank, -sum(p * math.log2(p) for p in s.noise.law().values())
    known = math.ceil(s.key_bits / entropy)
    block = primal_block(s.q, s.noise.sigma, [(n - known, s.noise.sigma)], s.degree * (s.rank + 1))
    return known, CLASSICAL * block, QUANTUM * block


def fourier(values, inverse=False):
    """The discrete Fourier transform of a power-of-two number of values."""
    n = len(values)
    out = [values[int(format(i, "b").zfill(n.bit_length() - 1)[::-1], 2)] for i in range(n)]
    size = 2
    while size <= n:
        step = [cmath.exp((2j if inverse else -2j) * math.pi * k / size) for k in range(size // 2)]
        for start in range(0, n, size):
            for k in range(size // 2):
                u, v = out[start + k], out[start + k + size // 2] * step[k]
                out[start + k], out[start + k + size // 2] = u + v, u - v
        size *= 2
    return [v / n for v in out] if inverse else out


def product_law(noise):
    out = {}
    for x, p in noise.law().items():
        for y, r in noise.law().items():
            out[x * y] = out.get(x * y, 0) + p * r
    return out


def tilt(law, rate):
    """The law weighted by e^(rate·x), normalised, with the logarithm of its norm and its mean."""
    weighted = {x: p * math.exp(rate * x) for x, p in law.items() if p > 0}
    norm = sum(weighted.values())
    mean = sum(x * p for x, p in weighted.items()) / norm
    return {x: p / norm for x, p in weighted.items()}, math.log(norm), mean


def bit_differs(q, d):
    """Pr[Mod2(x + d, σ) ≠ Mod2(x, σ)] for uniform x, σ = Sig(x), and even d: the chance to wrap around q."""
    half, quarter, wraps = q // 2, q // 4, 0
    for coin in (0, 1):
        for low, high in ((coin - quarter, coin + quarter), (quarter + coin - half, half - quarter + coin - 1)):
            wraps += min(max(high + d - half, -half - low - d, 0), high - low + 1)
    return wraps / (2 * q)


def failure(s):
    """log2 of the expected number of differing key bits of an honest exchange."""
    parts = [(product_law(s.noise), 2 * s.degree * s.rank), (s.noise.law(), 2)]
    start = s.q // 8
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        mean = sum(count * tilt(law, rate)[2] for law, count in parts)
        low, high = (rate, high) if mean < start else (low, rate)
    rate, size = low, 1 << 14
    spectrum, log_norm = [1.0] * size, 0.0
    for law, count in parts:
        tilted, norm, _ = tilt(law, rate)
        values = [0.0] * size
        for x, p in tilted.items():
            values[x % size] += p
        spectrum = [a * b**count for a, b in zip(spectrum, fourier(values))]
        log_norm += count * norm
    sums = [v.real for v in fourier(spectrum, inverse=True)]
    tail = 0.0
    for x in range(start - 8, start + 4096):
        both = bit_differs(s.q, 2 * x) + bit_differs(s.q, -2 * x)
        tail += sums[x % size] * math.exp(rate * (start - x)) * both
    return (math.log(s.key_bits * tail) + log_norm - rate * start) / math.log(2)


def main():
    if "--tables" in sys.argv:
        print(gaussian_table())
        return 0
    if "--whole" in sys.argv:
        for s in SETS:
            known, classical, quantum = whole_coefficients(s)
            print(f"{s.name}: {known} coefficients known, {classical:.0f} / {quantum:.0f}")
        return 0
    if "--check" not in sys.argv:
        print("| set | N, rank, q | noise | primal / dual block | classical | quantum | one chosen slot | failure | bytes an OT |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    good = True
    for s in SETS:
        h, leak, fails = hardness(s), chosen_slot(s), failure(s)
        if "--check" not in sys.argv:
            print(
                f"| `{s.name}` ({s.role}) | {s.degree}, {s.rank}, {s.q} | {s.noise.name} "
                f"| {h['primal block']} / {h['dual block']} | {h['classical']:.0f} | {h['quantum']:.0f} "
                f"| {leak[0]:.0f} / {leak[1]:.0f} | 2^{fails:.1f} | {s.wire_bytes()} |"
            )
        if s.role == "default":
            good &= h["classical"] >= 128 and leak[0] >= 128 and fails <= -128
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
