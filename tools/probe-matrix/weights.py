#!/usr/bin/env python3
"""The least weight of a sum of rows of the shipped probe matrices [M | I] of WMK17, for inputs of few bits, exactly.

    tools/probe-matrix/weights.py [K ...]

M of a size is the stream of AES-128 in counter mode under a seed that BLAKE3 derives from the size; all 2^K − 1 sums of
rows are looked at (docs/proofs/wmk17.md, 3.4 and 6.1).
"""

import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "reference")]
import with_numpy  # noqa: E402

with_numpy.ensure()
import numpy as np  # noqa: E402

import blake3  # noqa: E402
import blocks  # noqa: E402
from bound import width  # noqa: E402

# 40 bits, and four for the two ways of 3.2 and 3.4 together.
RHO = 44


def rows(k):
    """The rows of [M | I] as integers."""
    columns = width(k, RHO)
    derived = blake3.Blake3.derive_key("tacit 2026 wmk17 probe matrix v1")
    seed = derived.update(struct.pack("<QQ", k, columns)).digest(16)
    each = -(-columns // 128)
    stream = blocks.streams(np.frombuffer(bytes(seed), "<u8").reshape(1, 2).astype(np.uint64), 0, each * k)
    data = blocks.to_bytes(stream.reshape(-1, 2))
    cut = (1 << columns) - 1
    random = [int.from_bytes(data[16 * each * row : 16 * each * (row + 1)], "little") & cut for row in range(k)]
    return [row | 1 << (columns + i) for i, row in enumerate(random)]


def least_weight(k):
    """All sums in the order of a Gray code, one row more or less each time."""
    parts, total, least = rows(k), 0, 1 << 30
    for step in range(1, 1 << k):
        total ^= parts[(step & -step).bit_length() - 1]
        least = min(least, total.bit_count())
    return least


if __name__ == "__main__":
    for k in [int(word) for word in sys.argv[1:]] or [1, 2, 8, 16]:
        print(f"{k} bits in {width(k, RHO) + k}: {least_weight(k)}")
