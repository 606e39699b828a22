"""AES-128 with numpy: many keys and many blocks at once. Tables are built from the definition (FIPS 197)."""

import numpy as np


def _tables():
    exp, log, x = [0] * 256, [0] * 256, 1
    for i in range(255):
        exp[i], log[x] = x, i
        x ^= (x << 1) ^ (0x11B if x & 0x80 else 0)
    exp[255] = exp[0]
    box = [0] * 256
    for v in range(256):
        inverse = exp[255 - log[v]] if v else 0
        s = inverse
        for turn in range(1, 5):
            s ^= ((inverse << turn) | (inverse >> (8 - turn))) & 0xFF
        box[v] = s ^ 0x63

    def double(s):
        return (s << 1) ^ (0x11B if s & 0x80 else 0)

    columns = [double(s) | s << 8 | s << 16 | (double(s) ^ s) << 24 for s in box]
    turned = [[(c << 8 * i | c >> (32 - 8 * i)) & 0xFFFFFFFF if i else c for c in columns] for i in range(4)]
    return np.array(box, np.uint32), [np.array(t, np.uint32) for t in turned]


BOX, TURNED = _tables()


def words(data):
    """Bytes, or an array of blocks of 16 bytes, as little-endian words (…, 4)."""
    if isinstance(data, (bytes, bytearray)):
        data = np.frombuffer(bytes(data), np.uint8).reshape(-1, 16)
    return np.ascontiguousarray(data).view("<u4").astype(np.uint32)


def schedule(keys):
    """Round keys (…, 11, 4) of keys given as words (…, 4)."""
    out = np.empty((*keys.shape[:-1], 11, 4), np.uint32)
    out[..., 0, :] = keys
    constant = 1
    for i in range(1, 11):
        last = out[..., i - 1, 3]
        turned = last >> np.uint32(8) | last << np.uint32(24)
        s = BOX[turned & 255] | BOX[turned >> 8 & 255] << 8 | BOX[turned >> 16 & 255] << 16 | BOX[turned >> 24] << 24
        word = s ^ np.uint32(constant)
        for j in range(4):
            word = out[..., i - 1, j] ^ word
            out[..., i, j] = word
        constant = (constant << 1) ^ (0x11B if constant & 0x80 else 0)
    return out


def encrypt(keys, blocks):
    """Blocks (words, (…, 4)) under round keys (…, 11, 4), shapes broadcast against each other."""
    state = [blocks[..., j] ^ keys[..., 0, j] for j in range(4)]
    for i in range(1, 10):
        state = [
            TURNED[0][state[j] & 255]
            ^ TURNED[1][state[(j + 1) % 4] >> 8 & 255]
            ^ TURNED[2][state[(j + 2) % 4] >> 16 & 255]
            ^ TURNED[3][state[(j + 3) % 4] >> 24]
            ^ keys[..., i, j]
            for j in range(4)
        ]
    last = [
        (
            BOX[state[j] & 255]
            | BOX[state[(j + 1) % 4] >> 8 & 255] << 8
            | BOX[state[(j + 2) % 4] >> 16 & 255] << 16
            | BOX[state[(j + 3) % 4] >> 24] << 24
        )
        ^ keys[..., 10, j]
        for j in range(4)
    ]
    return np.stack(last, axis=-1)


def aes(key, block):
    """One block under one key, as bytes."""
    return encrypt(schedule(words(key))[0], words(block)).astype("<u4").tobytes()
