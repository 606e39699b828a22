#!/usr/bin/env python3
"""A receiver of ROTed that sends p⁰ = −h/2 makes the keys of the two slots related: sk¹ = sk⁰ ⊕ σ₀ in nearly every bit.

It knows neither key, and pads hash whole keys, so it gains nothing (docs/proofs/roted.md, 4.4). But sk¹ does not look
uniform beside sk⁰, as the paper's proof has it. The default set, schoolbook arithmetic, standard library alone.

proof: roted 4.4

Prints how often that holds; the exit code is 1 if it is fewer than 99 of 100 bits.
"""

import random
import sys

N, RANK, Q = 256, 3, 7681
RUNS = 20


def product(a, b):
    out = [0] * N
    for i, x in enumerate(a):
        for j, y in enumerate(b) if x else ():
            out[(i + j) % N] += x * y if i + j < N else -x * y
    return out


def centred(v, q=Q):
    return (v + q // 2) % q - q // 2


def signal(v, coin, q=Q):
    return int(not -(q // 4) + coin <= centred(v, q) <= q // 4 + coin)


def mod2(v, s, q=Q):
    return centred(centred(v, q) + s * (q // 2), q) % 2


def main():
    draw = random.Random(5)

    def small():
        return [sum(draw.getrandbits(1) for _ in range(2)) - sum(draw.getrandbits(1) for _ in range(2)) for _ in range(N)]

    holds, whole, half = 0, 0, pow(2, -1, Q)
    for _ in range(RUNS):
        secret = [small() for _ in range(RANK)]
        offset = [[draw.randrange(Q) for _ in range(N)] for _ in range(RANK)]
        first = [[-v * half % Q for v in row] for row in offset]
        second = [[(x + y) % Q for x, y in zip(*rows)] for rows in zip(first, offset)]
        slots = []
        for public in (first, second):
            shared = [2 * e for e in small()]
            for s, p in zip(secret, public):
                shared = [x + y for x, y in zip(shared, product(s, p))]
            signals = [signal(v, draw.getrandbits(1)) for v in shared]
            slots.append((signals, [mod2(v, s) for v, s in zip(shared, signals)]))
        (signals, keys), (_, others) = slots
        right = sum(key ^ s == other for key, s, other in zip(keys, signals, others))
        holds, whole = holds + right, whole + (right == N)
    print(f"sk1 = sk0 xor sigma0 in {holds} of {RUNS * N} bits, and in all bits of {whole} of {RUNS} keys")
    return 0 if holds >= 0.99 * RUNS * N else 1


if __name__ == "__main__":
    sys.exit(main())
