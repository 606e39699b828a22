"""SoftSpoken OT with groups of four bits: the correlations under the VOLE (docs/wire/softspoken.md)."""

import numpy as np

import base_ot
import blocks as B
from kos import column_sums, weights
from wire import FIRST, Recording, Transcript, refuse_unless

COLUMNS, DEPTH, TILE = 127, 4, 64
GROUPS = [range(at, min(at + DEPTH, COLUMNS)) for at in range(0, COLUMNS, DEPTH)]
CORRECTIONS = 2 * (COLUMNS - len(GROUPS))


def double(nodes):
    """The two children of each node: (n, 2 children, 2)."""
    return B.streams(nodes, 0, 2)


def tree(pairs):
    """The leaves under the pairs of one group (levels, 2, 2), and two corrections a level from the second on."""
    nodes, corrections = pairs[0], []
    for pair in pairs[1:]:
        children = double(nodes)
        corrections += [pair[bit] ^ B.xor_all(children[:, bit]) for bit in (0, 1)]
        nodes = np.concatenate([children[:, 0], children[:, 1]])
    return nodes, corrections


def punctured(keys, choices, corrections):
    """All leaves but that of all choices inverted, in whose place are zeros, from one key a level."""
    nodes, missing = B.zeros(2), 1 - choices[0]
    nodes[choices[0]] = keys[0]
    for level in range(1, len(keys)):
        children = double(nodes)
        children[missing] = 0
        side = choices[level]
        known = B.xor_all(children[:, side])
        children[missing, side] = keys[level] ^ corrections[2 * level - 2 + side] ^ known
        nodes = np.concatenate([children[:, 0], children[:, 1]])
        missing |= (1 - side) << level
    return nodes, missing


class Setup:
    """What both sides' setups have alike: what the check's weights bind."""

    def __init__(self, channel, malicious, sends):
        self.malicious, self.sends, self.opened, self.used = malicious, sends, False, 0
        self.history, self.passed = None, Recording()
        if malicious:
            self.history = Transcript("tacit softspoken v1").append("session", channel.session)
            self.history.append_u64("instance", channel.next_instance())
            self.history.append_u64("first party sends", int((channel.party == FIRST) == sends))

    def recorded(self, channel, step):
        channel.recordings.append(self.passed)
        out = step()
        channel.recordings.remove(self.passed)
        return out

    def bind(self, channel):
        if self.malicious:
            made = (
                Transcript("tacit kos seeds v1")
                .append("base", b"mrr21")
                .append("base", self.passed.digest(channel.party))
            )
            self.history.append("seeds", made.challenge("binding", 32))

    def batches(self, n):
        """(first row, blocks of data, blocks thrown away)."""
        total, step = -(-n // 128), TILE - 1 if self.malicious else TILE
        return [(at * 128, min(step, total - at), int(self.malicious)) for at in range(0, total, step)]

    def challenge(self, u):
        self.history.append("U", B.to_bytes(u))
        return B.of_bytes(self.history.challenge("weights", 16))[0]


class Sender(Setup):
    """Holds Δ, and receives the base OTs."""

    def __init__(self, channel, malicious, delta=None):
        super().__init__(channel, malicious, True)
        self.delta = (int.from_bytes(channel.random(16), "little") if delta is None else delta) | 1
        self.bits = [self.delta >> i & 1 for i in range(128)]
        self.base = self.recorded(channel, lambda: base_ot.Receiver(channel, self.bits[1:]))

    def finish(self, channel):
        seeds = self.recorded(channel, lambda: self.base.finish(channel))
        self.keys = B.of_bytes(b"".join(seeds))
        self.bind(channel)

    def _open(self, channel):
        data = channel.recv(16 * CORRECTIONS)
        if self.malicious:
            self.history.append("corrections", data)
        corrections, at = B.of_bytes(data), 0
        self.leaves = []
        for columns in GROUPS:
            choices = [self.bits[1 + c] for c in columns]
            mine = corrections[at : at + 2 * (len(columns) - 1)]
            at += len(mine)
            leaves, missing = punctured(self.keys[list(columns)], choices, mine)
            self.leaves.append((columns, leaves, missing))
        self.opened = True

    def extend(self, channel, n):
        """v of n correlations."""
        if not self.opened:
            self._open(channel)
        batches, out = self.batches(n), []
        streams = [
            B.streams(leaves, self.used, sum(data + more for _, data, more in batches)) for _, leaves, _ in self.leaves
        ]
        at = 0
        for start, data, more in batches:
            length = data + more
            u = B.of_bytes(channel.recv(16 * length * len(GROUPS))).reshape(len(GROUPS), length, 2)
            q = B.zeros(128, length)
            for (columns, leaves, missing), stream, d in zip(self.leaves, streams, u):
                for bit, column in enumerate(columns):
                    # Leaf `index` serves x = index inverted, which differs from Δ's bits where it differs from `missing`.
                    known = [i for i in range(len(leaves)) if (i ^ missing) >> bit & 1]
                    q[1 + column] = B.xor_all(stream[known, at : at + length]) ^ B.masked(self.bits[1 + column], d)
            at += length
            if self.malicious:
                w = weights(self.challenge(u), data)
                answer_bytes = channel.recv(128 * 16)
                answer = B.of_bytes(answer_bytes)
                expected = column_sums(q, w) ^ B.masked(self.bits, np.broadcast_to(answer[0], (128, 2)))
                refuse_unless((answer[1:] == expected[1:]).all(), "the receiver's columns do not agree")
                self.history.append("answer", answer_bytes)
            out.append(B.rows(q, min(n - start, data * 128)))
        self.used += at
        return np.concatenate(out)


class Receiver(Setup):
    """Draws its choices, and sends the base OTs."""

    def __init__(self, channel, malicious):
        super().__init__(channel, malicious, False)
        self.base = self.recorded(channel, lambda: base_ot.Sender(channel, COLUMNS))

    def finish(self, channel):
        pairs = self.recorded(channel, lambda: self.base.finish(channel))
        self.pairs = B.of_bytes(b"".join(block for pair in pairs for block in pair)).reshape(COLUMNS, 2, 2)
        self.bind(channel)

    def _open(self, channel):
        self.leaves, corrections = [], []
        for columns in GROUPS:
            leaves, of_tree = tree(self.pairs[list(columns)])
            self.leaves.append((columns, leaves))
            corrections += of_tree
        data = B.to_bytes(np.array(corrections))
        if self.malicious:
            self.history.append("corrections", data)
        channel.send(data)
        self.opened = True

    def extend(self, channel, n, spoil=None):
        """w of n correlations; the lowest bit is the choice. A cheater's `spoil` changes what is sent."""
        if not self.opened:
            self._open(channel)
        batches, out = self.batches(n), []
        streams = [
            B.streams(leaves, self.used, sum(data + more for _, data, more in batches)) for _, leaves in self.leaves
        ]
        at = 0
        for start, data, more in batches:
            length = data + more
            t = B.zeros(128, length)
            t[0] = B.of_bytes(channel.random(16 * length))
            u = B.zeros(len(GROUPS), length)
            for group, ((columns, leaves), stream) in enumerate(zip(self.leaves, streams)):
                here = stream[:, at : at + length]
                u[group] = t[0] ^ B.xor_all(here)
                for bit, column in enumerate(columns):
                    t[1 + column] = B.xor_all(here[[i for i in range(len(leaves)) if not i >> bit & 1]])
            at += length
            u = spoil(u) if spoil else u
            channel.send(B.to_bytes(u))
            if self.malicious:
                answer = B.to_bytes(column_sums(t, weights(self.challenge(u), data)))
                channel.send(answer)
                self.history.append("answer", answer)
            out.append(B.rows(t, min(n - start, data * 128)))
        self.used += at
        channel.flush()
        return np.concatenate(out)
