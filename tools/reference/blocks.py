"""Blocks of 128 bits as arrays of two 64-bit words, low word first; AES as a stream and as hashes; GF(2^128)."""

import numpy as np

import aes

ONE = np.uint64(1)


def of_bytes(data):
    """Blocks (n, 2) of 16 n bytes."""
    return np.frombuffer(bytes(data), "<u8").reshape(-1, 2).astype(np.uint64)


def to_bytes(blocks):
    return np.ascontiguousarray(blocks).astype("<u8").tobytes()


def of_int(value):
    return np.array([value & (1 << 64) - 1, value >> 64], np.uint64)


def to_int(block):
    return int(block[0]) | int(block[1]) << 64


def of_ints(values):
    return of_bytes(b"".join(v.to_bytes(16, "little") for v in values))


def zeros(*shape):
    return np.zeros((*shape, 2), np.uint64)


def _words(blocks):
    return np.ascontiguousarray(blocks).view(np.uint32).reshape(*blocks.shape[:-1], 4)


def _blocks(words):
    return np.ascontiguousarray(words).view(np.uint64).reshape(*words.shape[:-1], 2)


def round_keys(keys):
    return aes.schedule(_words(keys))


def encrypt(keys, blocks):
    """Blocks under round keys."""
    return _blocks(aes.encrypt(keys, _words(blocks)))


def counters(first, count):
    out = zeros(count)
    out[:, 0] = np.arange(first, first + count, dtype=np.uint64)
    return out


class Prg:
    """The stream of a seed: block i is AES_seed(i)."""

    def __init__(self, seed):
        self.keys, self.at = round_keys(np.asarray(seed)), 0

    def take(self, count):
        out = encrypt(self.keys, counters(self.at, count))
        self.at += count
        return out

    def u64(self):
        """The low half of the next block."""
        return int(self.take(1)[0, 0])


def streams(seeds, first, count):
    """Blocks `first` to `first + count` of the streams of all seeds: (seeds, count, 2)."""
    return encrypt(round_keys(seeds)[:, None], counters(first, count)[None])


def sigma(x):
    """(low ⊕ high) in the high half, high in the low half: σ(x_L‖x_R) = (x_L ⊕ x_R)‖x_L, x_L being the high half."""
    return np.stack([x[..., 1], x[..., 0] ^ x[..., 1]], axis=-1)


def ccr(keys, x):
    """CCR: AES(σ(x)) ⊕ σ(x)."""
    s = sigma(x)
    return encrypt(keys, s) ^ s


def mitccrh(start, gids, x):
    """MITCCRH: CCR of x[i] under the key start ⊕ gids[i]; x may have further axes behind the first."""
    keys = np.broadcast_to(np.asarray(start), (len(gids), 2)).copy()
    keys[:, 0] ^= np.asarray(gids, np.uint64)
    keys = round_keys(keys)
    return ccr(keys.reshape(len(gids), *[1] * (x.ndim - 2), 11, 4), x)


def bits_of(data, count):
    """The first `count` bits, lowest bit of a byte first."""
    return np.unpackbits(np.frombuffer(bytes(data), np.uint8), bitorder="little")[:count]


def pack(bits):
    return np.packbits(np.asarray(bits, np.uint8), bitorder="little").tobytes()


def masked(bits, blocks):
    """The blocks whose bit is set, the others zero."""
    return blocks * np.asarray(bits, np.uint64)[..., None]


def lsb(blocks):
    return (blocks[..., 0] & ONE).astype(np.uint8)


def xor_all(blocks, axis=0):
    return np.bitwise_xor.reduce(blocks, axis=axis)


def rows(columns, count):
    """128 columns of blocks (128, n, 2) to `count` rows: bit j of column i is bit i of row j."""
    bits = np.unpackbits(np.ascontiguousarray(columns).view(np.uint8).reshape(128, -1), axis=1, bitorder="little")
    return of_bytes(np.packbits(bits[:, :count].T, axis=1, bitorder="little").tobytes())


# GF(2)[x]/(x^128 + x^7 + x^2 + x + 1); bit i is the coefficient of x^i.


def double(a):
    top = a[..., 1] >> np.uint64(63)
    return np.stack([a[..., 0] << ONE ^ top * np.uint64(0x87), a[..., 1] << ONE | a[..., 0] >> np.uint64(63)], axis=-1)


def mul(a, b):
    """Products, element by element; shapes broadcast."""
    a, b = np.broadcast_arrays(np.asarray(a, np.uint64), np.asarray(b, np.uint64))
    shape, a, b = a.shape, a.reshape(-1, 2), b.reshape(-1, 2)
    if len(a) <= FEW:
        return np.stack(_by_nibbles(a, b), axis=-1).reshape(shape)
    parts = [np.stack(_by_bits(a[at : at + PART], b[at : at + PART]), axis=-1) for at in range(0, len(a), PART)]
    return np.concatenate(parts).reshape(shape)


# Up to so many products the number of operations counts, and from then on their memory.
FEW = 1000
# Products that fit a cache.
PART = 8192
# What four bits beyond x^127 add.
BEYOND = np.array([t ^ t << 1 ^ t << 2 ^ t << 7 for t in range(16)], np.uint64)


def _by_bits(a, b):
    low, high = np.zeros(len(a), np.uint64), np.zeros(len(a), np.uint64)
    al, ah = a[:, 0].copy(), a[:, 1].copy()
    full, seven = np.uint64(63), np.uint64(0x87)
    for word in (b[:, 0], b[:, 1]):
        for bit in range(64):
            mask = np.uint64(0) - (word >> np.uint64(bit) & ONE)
            low ^= al & mask
            high ^= ah & mask
            top = ah >> full
            ah = ah << ONE | al >> full
            al = al << ONE ^ top * seven
    return low, high


def _by_nibbles(a, b):
    table = zeros(16, len(a))
    table[1] = a
    for i in range(2, 16, 2):
        table[i] = double(table[i // 2])
        table[i + 1] = table[i] ^ a
    low, high = np.zeros(len(a), np.uint64), np.zeros(len(a), np.uint64)
    four, sixty, nibble, each = np.uint64(4), np.uint64(60), np.uint64(15), np.arange(len(a))
    for word in (b[:, 1], b[:, 0]):
        for shift in range(60, -1, -4):
            top = high >> sixty
            high = high << four | low >> sixty
            low = low << four ^ BEYOND[top]
            picked = table[word >> np.uint64(shift) & nibble, each]
            low ^= picked[:, 0]
            high ^= picked[:, 1]
    return low, high


def power_sum(blocks):
    """Σ blocks[i]·x^i over the axis before the last, of 128 blocks."""
    total = zeros(*blocks.shape[:-2])
    for i in reversed(range(blocks.shape[-2])):
        total = double(total) ^ blocks[..., i, :]
    return total


def mul_int(a, b):
    """The product of two field elements as numbers."""
    out = 0
    while b:
        if b & 1:
            out ^= a
        b >>= 1
        a <<= 1
        if a >> 128:
            a ^= 1 << 128 | 0x87
    return out


def inverse_int(a):
    """The inverse, by Euclid's algorithm on polynomials over GF(2)."""
    r, s, u, v = 1 << 128 | 0x87, a, 0, 1
    while s > 1:
        shift = r.bit_length() - s.bit_length()
        if shift < 0:
            r, s, u, v, shift = s, r, v, u, -shift
        r, u = r ^ s << shift, u ^ v << shift
        if r.bit_length() < s.bit_length():
            r, s, u, v = s, r, v, u
    return v
