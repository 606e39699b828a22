#!/usr/bin/env python3
"""A receiver of ROTed that sends t_0 = t_1 and p⁰ = u − h/2 would have both pads of a transfer equal far too often.

So the sender refuses equal t (docs/proofs/roted.md, 2.7 and 4.4): a pad's hash does not have the slot in it. An extension on
top of equal pads would send choice bits in the clear. With z = ⟨s, h⟩/2 and w = ⟨s, u⟩ the shared values are w − z and w + z.
For uniform z a bit of the two keys is equal with a chance that depends on w alone: 1 at w = −q/4, ½ at 0, 0 at q/4. The
receiver does not know s, but it takes u of the lowest frequencies of the negacyclic transform: then w is a few random numbers,
and with some luck near −q/4 everywhere.

proof: roted 2.7

Two experiments. The alternative set, of whose 1,024 coefficients a key has 256: s, h and noise as the protocol draws them, the
real Sig and Mod2, and a count of the runs in which all bits are equal, about one in 11,000. The default set, with one half
wave and three: the chance, 2^-59, averaged over s by importance sampling. Standard library alone; some two minutes. The exit
code is 1 unless some run of the first has equal keys, and the chance of the second is over 2^-64.
"""

import math
import random
import sys
from operator import mul

from related_keys import N, Q, centred, mod2, signal

# Of each frequency: the deviation of its amplitude, and the amplitude that is best, in quarters of q.
WAVES = [(1, 0.878, -1.24), (3, 0.231, -0.32)]
SAMPLES, RUNS = 5000, 60000
LAW = {-2: 1 / 16, -1: 4 / 16, 0: 6 / 16, 1: 4 / 16, 2: 1 / 16}


def equal(w):
    """The chance over z that a bit of the keys of w − z and w + z is the same."""
    w = centred(w) / (Q / 4)
    return (1 - (w if abs(w) <= 1 else math.copysign(2, w) - w)) / 2


def product(s, u):
    """s·u modulo X^N + 1 and q, s being the list of its places that are not zero."""
    twice = [-x for x in u] + u
    out = [0] * N
    for i, x in s:
        shifted = twice[N - i : 2 * N - i]
        out = [a + x * b for a, b in zip(out, shifted)]
    return out


def small(draw, count):
    """Values of the centred binomial law from -2 to 2."""
    return draw.choices(list(LAW), list(LAW.values()), k=count)


def counted(draw):
    """Of RUNS runs of the alternative set, those in which both keys are equal in all bits."""
    degree, q, bits = 1024, 12289, 256
    # A whole half wave has 1,024 coefficients; its middle lies on the 256 that are reconciled.
    scale = 0.724 * q / 4 / math.sqrt(degree / 2)
    u = [round(scale * math.cos(math.pi * (j - bits / 2) / degree)) for j in range(degree)]
    turned = ([-x for x in u] + u)[::-1]
    offset = [draw.randrange(q) for _ in range(degree)]
    halved = [x * pow(2, -1, q) % q for x in offset]
    other = ([-x for x in halved] + halved)[::-1]
    equal_runs = 0
    for _ in range(RUNS):
        s = small(draw, degree)
        for j in range(bits):
            # Coefficient j of s·u is Σ s_i·u_(j − i), with a change of sign around the end.
            at = degree - 1 - j
            w = sum(map(mul, s, turned[at : at + degree]))
            z = sum(map(mul, s, other[at : at + degree]))
            keys = []
            for k in (w - z, w + z):
                k += 2 * small(draw, 1)[0]
                keys.append(mod2(k, signal(k, draw.getrandbits(1), q), q))
            if keys[0] != keys[1]:
                break
        else:
            equal_runs += 1
    return equal_runs


def averaged(draw):
    """log2 of the chance that the keys of the default set are equal."""
    # w in one coefficient is Σ over waves of β·Σ s_i·cos(k·π·(j − i)/N).
    scale = [deviation * Q / 4 / math.sqrt(N / 2) for _, deviation, _ in WAVES]
    u = [round(sum(b * math.cos(k * math.pi * j / N) for b, (k, _, _) in zip(scale, WAVES))) for j in range(N)]
    # s is drawn by a law that leans towards the best amplitudes: s_i·e^(lean_i·s_i).
    lean = [
        sum(best * Q / 4 / b / (N / 2) * math.sin(k * math.pi * i / N) for b, (k, _, best) in zip(scale, WAVES))
        for i in range(N)
    ]
    laws = []
    for rate in lean:
        weights = [p * math.exp(rate * x) for x, p in LAW.items()]
        laws.append((weights, math.log(sum(weights))))
    total = 0.0
    for _ in range(SAMPLES):
        s, weight = [], 0.0
        for i, (weights, norm) in enumerate(laws):
            x = draw.choices(list(LAW), weights)[0]
            weight += norm - lean[i] * x
            if x:
                s.append((i, x))
        total += math.exp(weight + sum(math.log(max(equal(v), 1e-9)) for v in product(s, u)))
    return math.log2(total / SAMPLES)


def main():
    draw = random.Random(11)
    found, chance = counted(draw), averaged(draw)
    print(f"alternative set: keys equal in {found} of {RUNS} runs; default set: with 2^{chance:.1f}")
    return 0 if found and chance > -64 else 1


if __name__ == "__main__":
    sys.exit(main())
