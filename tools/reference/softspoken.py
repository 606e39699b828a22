"""SoftSpoken OT: correlated OT by groups of columns, drawn and by hash (docs/wire/softspoken.md)."""

import numpy as np

import blocks as B
import kos
from wire import FIRST, Recording, Transcript


def groups(size):
    """The columns of each group."""
    return [range(at, min(at + size, 1 + kos.COLUMNS)) for at in range(1, 1 + kos.COLUMNS, size)]


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
    return nodes


def by_x(leaves):
    """The leaves in the order of the x of s_x."""
    return leaves[::-1]


class Groups:
    """The groups of either side: `groups` has their columns, and the seeds are all trees' leaves, ordered by x."""

    def cut(self, size):
        self.groups = groups(size)
        self.width = len(self.groups)
        self.corrections = 2 * (kos.COLUMNS - self.width)

    def of_groups(self, length):
        """Each group's columns, and the next blocks of its s_x: (x, length, 2)."""
        ends = np.cumsum([1 << len(columns) for columns in self.groups])
        return zip(self.groups, np.split(self.stretch(length), ends[:-1]))

    @staticmethod
    def total(s, m, bit):
        """The XOR of the s_x whose bit m is `bit`."""
        return B.xor_all(s[np.arange(len(s)) >> m & 1 == bit])


class Sender(Groups, kos.Sender):
    """The drawn form's. Holds Δ, and receives the base OTs."""

    def __init__(self, channel, size, delta=None):
        self.cut(size)
        super().__init__(channel, delta)
        self.plant(channel)

    def plant(self, channel):
        """Receives the trees' corrections, and returns their bytes."""
        data = channel.recv(16 * self.corrections)
        corrections, leaves = B.of_bytes(data), []
        for columns in self.groups:
            mine, corrections = np.split(corrections, [2 * len(columns) - 2])
            keys = self.seeds[columns[0] - 1 : columns[-1]]
            leaves.append(by_x(punctured(keys, [self.bits[i] for i in columns], mine)))
        self.start(np.concatenate(leaves))
        return data

    def columns(self, u):
        q = B.zeros(128, u.shape[1])
        for (columns, s), sent in zip(self.of_groups(u.shape[1]), u):
            for m, i in enumerate(columns):
                q[i] = self.total(s, m, 1 - self.bits[i]) ^ B.masked(self.bits[i], sent)
        return q


class Receiver(Groups, kos.Receiver):
    """The drawn form's. Draws its choices, and sends the base OTs."""

    def __init__(self, channel, size):
        self.cut(size)
        super().__init__(channel)
        self.plant(channel)

    def plant(self, channel):
        """Sends the trees' corrections, and returns their bytes."""
        pairs, leaves, corrections = self.seeds.reshape(2, kos.COLUMNS, 2), [], []
        for columns in self.groups:
            mine, of_tree = tree(pairs[:, columns[0] - 1 : columns[-1]].swapaxes(0, 1))
            leaves.append(by_x(mine))
            corrections += of_tree
        self.start(np.concatenate(leaves))
        data = B.to_bytes(np.array(corrections))
        channel.send(data)
        return data

    def columns(self, r):
        t, sent = B.zeros(128, len(r)), B.zeros(self.width, len(r))
        t[0] = r
        for at, (columns, s) in enumerate(self.of_groups(len(r))):
            sent[at] = r ^ B.xor_all(s)
            for m, i in enumerate(columns):
                t[i] = self.total(s, m, 1)
        return t, sent


class ByHash:
    """What both sides of the form by hash have alike: what the check's weights bind."""

    def prepare(self, channel, malicious, sends):
        self.cut(4)
        self.malicious, self.planted, self.passed = malicious, False, Recording()
        if malicious:
            self.history = Transcript("tacit softspoken v1").append("session", channel.session)
            self.history.append_u64("instance", channel.next_instance())
            self.history.append_u64("first party sends", int((channel.party == FIRST) == sends))

    def recorded(self, channel, step, *arguments):
        channel.recordings.append(self.passed)
        step(channel, *arguments)
        channel.recordings.remove(self.passed)

    def finish(self, channel):
        self.recorded(channel, super().finish)
        if self.malicious:
            made = (
                Transcript("tacit kos seeds v1")
                .append("base", b"mrr21")
                .append("base", self.passed.digest(channel.party))
            )
            self.history.append("seeds", made.challenge("binding", 32))

    def extend(self, channel, n):
        """v or w of n correlations."""
        if not self.planted:
            corrections, self.planted = self.plant(channel), True
            if self.malicious:
                self.history.append("corrections", corrections)
        if not self.malicious:
            return kos.Iknp(self).extend(channel, n)
        batches = kos.batches(n, kos.TILE - 1)
        rows = [B.rows(self.batch(channel, data), min(n - start, data * 128)) for start, data in batches]
        channel.flush()
        return np.concatenate(rows)

    def sums(self, columns, u, data):
        self.history.append("U", B.to_bytes(u))
        challenge = B.of_bytes(self.history.challenge("weights", 16))[0]
        return kos.column_sums(columns, kos.weights(challenge, data))


class SenderByHash(ByHash, Sender):
    def __init__(self, channel, malicious, delta=None):
        self.prepare(channel, malicious, True)
        self.recorded(channel, self.begin, delta)

    def batch(self, channel, data):
        q, u = self.tile(channel, data + 1)
        self.history.append("answer", self.verify(channel, self.sums(q, u, data)))
        return q


class ReceiverByHash(ByHash, Receiver):
    def __init__(self, channel, malicious):
        self.prepare(channel, malicious, False)
        self.recorded(channel, self.begin)

    def batch(self, channel, data):
        t, u = self.tile(channel, B.of_bytes(channel.random(16 * (data + 1))))
        answer = B.to_bytes(self.sums(t, u, data))
        channel.send(answer)
        self.history.append("answer", answer)
        return t
