"""BLAKE3: hash, keyed hash and key derivation, with output of any length, for the reference alone."""

import struct

import numpy as np

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED, CONTEXT, MATERIAL = (1 << bit for bit in range(7))
CHUNK = 1024
# Chunks from which on it pays to take them side by side.
MANY = 3
MIXES = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)


def _schedules():
    order, out = tuple(range(16)), []
    for _ in range(7):
        out.append(order)
        order = tuple(order[i] for i in PERMUTATION)
    return out


SCHEDULES = _schedules()


def _rounds():
    """The seven rounds as straight-line code, which is several times faster than loops."""
    lines = [
        "def rounds(v, m):",
        " " + ",".join(f"v{i}" for i in range(16)) + "=v",
        " " + ",".join(f"m{i}" for i in range(16)) + "=m",
    ]
    for order in SCHEDULES:
        for i, (a, b, c, d) in enumerate(MIXES):
            for word, (down, up) in ((order[2 * i], (16, 12)), (order[2 * i + 1], (8, 7))):
                lines += [
                    f" v{a}=v{a}+v{b}+m{word}&0xffffffff",
                    f" t=v{d}^v{a}",
                    f" v{d}=(t>>{down}|t<<{32 - down})&0xffffffff",
                    f" v{c}=v{c}+v{d}&0xffffffff",
                    f" t=v{b}^v{c}",
                    f" v{b}=(t>>{up}|t<<{32 - up})&0xffffffff",
                ]
    lines.append(" return " + ",".join(f"v{i}" for i in range(16)))
    scope = {}
    exec("\n".join(lines), scope)  # The text above, and nothing else.
    return scope["rounds"]


_run = _rounds()


def _compress(chain, block, counter, length, flags):
    state = (*chain, *IV[:4], counter & 0xFFFFFFFF, counter >> 32, length, flags)
    out = _run(state, struct.unpack("<16I", block))
    return tuple(out[i] ^ out[i + 8] for i in range(8)) + tuple(out[i + 8] ^ chain[i] for i in range(8))


# Rows moved up by so many.
TURNS = [np.arange(up, up + 4) % 4 for up in range(4)]


def _turn(x, count):
    return x >> np.uint32(count) | x << np.uint32(32 - count)


def _mix(a, b, c, d, x, y):
    for word, (down, up) in ((x, (16, 12)), (y, (8, 7))):
        a = a + b + word
        d = _turn(d ^ a, down)
        c = c + d
        b = _turn(b ^ c, up)
    return a, b, c, d


def _chunks(key, data, first, flags):
    """The values of whole chunks that are not the last one, side by side."""
    count = len(data) // CHUNK
    words = np.frombuffer(data, "<u4").reshape(count, 16, 16).astype(np.uint32)
    chain = np.repeat(np.array(key, np.uint32)[:, None], count, 1)
    counters = np.arange(first, first + count, dtype=np.uint64)
    for block in range(16):
        m = words[:, block].T
        marks = flags | (CHUNK_START if block == 0 else 0) | (CHUNK_END if block == 15 else 0)
        a, b = chain[:4], chain[4:]
        c = np.repeat(np.array(IV[:4], np.uint32)[:, None], count, 1)
        d = np.stack(
            [counters.astype(np.uint32), (counters >> np.uint64(32)).astype(np.uint32)]
            + [np.full(count, value, np.uint32) for value in (64, marks)]
        )
        for order in SCHEDULES:
            order = list(order)
            a, b, c, d = _mix(a, b, c, d, m[order[0:8:2]], m[order[1:8:2]])
            # Columns become diagonals, and columns again.
            b, c, d = b[TURNS[1]], c[TURNS[2]], d[TURNS[3]]
            a, b, c, d = _mix(a, b, c, d, m[order[8::2]], m[order[9::2]])
            b, c, d = b[TURNS[3]], c[TURNS[2]], d[TURNS[1]]
        chain = np.concatenate([a ^ c, b ^ d])
    return [tuple(int(word) for word in column) for column in chain.T]


class Blake3:
    """A running hash. `digest` may be asked at any time, and more may be added afterwards."""

    def __init__(self, key=IV, flags=0):
        self.key, self.flags = key, flags
        self.stack, self.chunks = [], 0
        self.chain, self.buffer, self.blocks = key, b"", 0
        self.count = 0

    @classmethod
    def keyed(cls, key):
        assert len(key) == 32
        return cls(struct.unpack("<8I", key), KEYED)

    @classmethod
    def derive_key(cls, context):
        key = cls(IV, CONTEXT).update(context.encode()).digest(32)
        return cls(struct.unpack("<8I", key), MATERIAL)

    def _start(self):
        return CHUNK_START if self.blocks == 0 else 0

    def update(self, data):
        data = memoryview(bytes(data))
        self.count += len(data)
        while len(data):
            if len(self.buffer) == 64:
                self._full_block()
            whole = (len(data) - 1) // CHUNK
            if whole >= MANY and not self.buffer and self.blocks == 0:
                for value in _chunks(self.key, bytes(data[: whole * CHUNK]), self.chunks, self.flags):
                    self._push(value)
                data = data[whole * CHUNK :]
            room = 64 - len(self.buffer)
            self.buffer += bytes(data[:room])
            data = data[room:]
        return self

    def _full_block(self):
        if self.blocks == 15:
            out = _compress(self.chain, self.buffer, self.chunks, 64, self.flags | self._start() | CHUNK_END)
            self._push(out[:8])
            self.chain, self.blocks = self.key, 0
        else:
            self.chain = _compress(self.chain, self.buffer, self.chunks, 64, self.flags | self._start())[:8]
            self.blocks += 1
        self.buffer = b""

    def _push(self, value):
        self.chunks += 1
        total = self.chunks
        while total % 2 == 0:
            value = self._parent(self.stack.pop(), value)[:8]
            total //= 2
        self.stack.append(value)

    def _parent(self, left, right):
        return _compress(self.key, struct.pack("<16I", *left, *right), 0, 64, self.flags | PARENT)

    def digest(self, length=32):
        chain, block, counter = self.chain, self.buffer.ljust(64, b"\0"), self.chunks
        size, flags = len(self.buffer), self.flags | self._start() | CHUNK_END
        for left in reversed(self.stack):
            value = _compress(chain, block, counter, size, flags)[:8]
            chain, block, counter, size, flags = (
                self.key,
                struct.pack("<16I", *left, *value),
                0,
                64,
                self.flags | PARENT,
            )
        out = b""
        for piece in range((length + 63) // 64):
            out += struct.pack("<16I", *_compress(chain, block, piece, size, flags | ROOT))
        return out[:length]

    def copy(self):
        other = Blake3(self.key, self.flags)
        other.__dict__.update(self.__dict__)
        other.stack = list(self.stack)
        return other


def hashed(data, length=32):
    return Blake3().update(data).digest(length)


def keyed(key, data, length=32):
    return Blake3.keyed(key).update(data).digest(length)
