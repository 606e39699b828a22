"""The stores of VOLE-PSI (docs/wire/vole-psi.md): a polynomial for small sets, sparse slots in bins for others."""

from math import isqrt

import numpy as np

import blocks as B

SMALL, PAIRS = 1 << 10, 1 << 31
RATIO = (
    1175973,
    839490,
    610461,
    454570,
    348462,
    276239,
    227080,
    193619,
    170844,
    155342,
    144790,
    137608,
    132720,
    129393,
    127128,
    125586,
    124537,
    123823,
)


def interpolate(keys, values):
    """The polynomial's coefficients, lowest first: one point after the other, with what is left at all others."""
    n = len(keys)
    points, left = B.of_ints(keys), B.of_ints(values)
    # The polynomial that is zero at all points so far: its values at all points, and its coefficients.
    at_points, zero = np.broadcast_to(B.of_int(1), (n, 2)), B.zeros(n + 1)
    zero[0, 0], out = 1, B.zeros(n + 1)
    for i in range(n):
        share = B.mul_int(B.to_int(left[i]), B.inverse_int(B.to_int(at_points[i])))
        added = B.mul(np.concatenate([at_points, zero]), B.of_int(share))
        left, out = left ^ added[:n], out ^ added[n:]
        grown = B.mul(
            np.concatenate([at_points, zero]),
            np.concatenate([points ^ points[i], np.broadcast_to(points[i], zero.shape)]),
        )
        at_points, zero = grown[:n], grown[n:] ^ np.concatenate([B.zeros(1), zero[:-1]])
    return out[:n]


class Polynomial:
    """One slot a key."""

    def __init__(self, count):
        self.slots, self.numbers = count, (1, 0, count)

    def encode(self, keys, values, _):
        return interpolate(keys, values)

    def decode(self, slots, keys):
        points, out = B.of_ints(keys), B.zeros(len(keys))
        for slot in slots[::-1]:
            out = B.mul(out, points) ^ slot
        return out


def fullest(keys, bins, bits):
    """A bound on the keys of a bin."""
    mean, most = -(-keys // bins) + 1, -(-bits * 694 // 1000)
    return mean + -(-most // 3) + isqrt(most * most // 9 + 2 * most * mean) + 1


def ratio(room):
    """Sparse slots a key, in hundred-thousandths."""
    log = room.bit_length() - 1
    if log + 2 > len(RATIO):
        return RATIO[-1]
    return RATIO[log] - ((RATIO[log] - RATIO[log + 1]) * (room - (1 << log)) >> log)


class Sparse:
    """Three slots a key, one in each third of a bin, and the bin's dense slots."""

    def __init__(self, count):
        self.bins = max(-(-count // (1 << 16 if count <= 1 << 24 else 1 << 17)), 1)
        doublings = (self.bins - 1).bit_length()
        room = count if self.bins == 1 else fullest(count, self.bins, 42 + doublings)
        self.third = max(-(-room * (ratio(room) + 43 * doublings) // 300_000), 1)
        self.dense = min((42 + doublings) // ((3 * self.third).bit_length() - 1) + 2, room)
        self.size = 3 * self.third + self.dense
        self.slots, self.numbers = self.bins * self.size, (self.bins, self.third, self.dense)

    def places(self, keys):
        """The bin of each key, and its three slots within it."""
        hashed = B.ccr(B.round_keys(B.of_int(0)), B.of_ints(keys))
        low, high, word = hashed[:, 0], hashed[:, 1], np.uint64(0xFFFFFFFF)

        def scaled(part, count):
            return (part & word) * np.uint64(count) >> np.uint64(32)

        third, half = self.third, np.uint64(32)
        thirds = [
            scaled(low >> half, third),
            scaled(high, third) + np.uint64(third),
            scaled(high >> half, third) + np.uint64(2 * third),
        ]
        return scaled(low, self.bins).astype(int), np.stack(thirds, 1).astype(int)

    def encode(self, keys, values, random):
        """`random(n)` gives n bytes, for the slots that no key settles."""
        table = [int.from_bytes(random(16), "little") for _ in range(self.slots)]
        bins, places = self.places(keys)
        for number in range(self.bins):
            members = np.flatnonzero(bins == number)
            start = number * self.size
            of_bin = table[start : start + self.size]
            self._solve([keys[i] for i in members], [values[i] for i in members], places[members].tolist(), of_bin)
            table[start : start + self.size] = of_bin
        return B.of_ints(table)

    def _solve(self, keys, values, places, table):
        steps, gaps = peel(places, 3 * self.third)
        dense = 3 * self.third
        rows = []
        for gap in gaps:
            # The sum of equations in which every slot that a key settles is gone.
            odd, inside = set(places[gap]), [gap]
            for key, slot in steps:
                if slot in odd:
                    odd ^= set(places[key])
                    inside.append(key)
            s, total = 0, 0
            for key in inside:
                s, total = s ^ keys[key], total ^ values[key]
            for slot in odd:
                total ^= table[slot]
            row = [s]
            while len(row) < self.dense:
                row.append(B.mul_int(row[-1], row[-1]))
            rows.append([*row, total])
        eliminate(rows, table, dense)
        for key, slot in reversed(steps):
            table[slot] = 0
            table[slot] = values[key] ^ self._value(table, keys[key], places[key])

    def _value(self, table, key, places):
        out, power = 0, key
        for slot in places:
            out ^= table[slot]
        for at in range(self.dense):
            out ^= B.mul_int(power, table[3 * self.third + at])
            power = B.mul_int(power, power)
        return out

    def decode(self, slots, keys):
        bins, places = self.places(keys)
        start = bins * self.size
        out = B.xor_all(slots[start[:, None] + places], 1)
        power = B.of_ints(keys)
        for at in range(self.dense):
            out = out ^ B.mul(power, slots[start + 3 * self.third + at])
            power = B.mul(power, power)
        return out


def peel(places, count):
    """Keys with the slot that each settles, the first one to be settled last; and the keys set aside."""
    at_slot = [set() for _ in range(count)]
    for key, mine in enumerate(places):
        for slot in mine:
            at_slot[slot].add(key)
    single = [slot for slot in range(count) if len(at_slot[slot]) == 1]
    left, steps, gaps = set(range(len(places))), [], []
    while left:
        if single:
            slot = single.pop()
            if len(at_slot[slot]) != 1:
                continue
            (key,) = at_slot[slot]
            steps.append((key, slot))
        else:
            key = max(left, key=lambda key: sum(len(at_slot[slot]) == 2 for slot in places[key]))
            gaps.append(key)
        left.remove(key)
        for slot in places[key]:
            at_slot[slot].discard(key)
            if len(at_slot[slot]) == 1:
                single.append(slot)
    return steps, gaps


def eliminate(rows, table, dense):
    """Settles the dense slots by equations: coefficients, and their sum behind them."""
    done = []
    for row in rows:
        for column, other in done:
            factor = row[column]
            row = [a ^ B.mul_int(factor, b) for a, b in zip(row, other)]
        column = next(i for i, entry in enumerate(row[:-1]) if entry)
        scale = B.inverse_int(row[column])
        row = [B.mul_int(scale, entry) for entry in row]
        done = [(at, [a ^ B.mul_int(other[column], b) for a, b in zip(other, row)]) for at, other in done]
        done.append((column, row))
    for column, row in done:
        total = row[-1]
        for at, entry in enumerate(row[:-1]):
            if at != column:
                total ^= B.mul_int(entry, table[dense + at])
        table[dense + column] = total


def store(receiver, sender):
    """The store of a receiver's set against a sender's."""
    small = 1 <= receiver <= SMALL and receiver * sender <= PAIRS
    return Polynomial(receiver) if small else Sparse(receiver)
