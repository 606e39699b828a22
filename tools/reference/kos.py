"""KOS, correlated OT against a malicious peer (docs/wire/ot.md), and random and chosen OT from it."""

import numpy as np

import base_ot
import blocks as B
from wire import FIRST, Transcript, refuse_unless

COLUMNS, TILE, BATCH, WINDOW = 127, 64, 512, 4


def batches(n):
    """(first OT, blocks of data) of each batch of a request."""
    left = -(-n // 128)
    return [(at * 128, min(BATCH - 1, left - at)) for at in range(0, left, BATCH - 1)]


def tiles(length):
    return [(at, min(TILE, length - at)) for at in range(0, length, TILE)]


def weights(challenge, data):
    one = B.of_int(1)[None]
    return np.concatenate([B.Prg(challenge).take(data), one])


def column_sums(columns, w):
    """Σ w[j]·columns[i][j] of every column i."""
    return B.xor_all(B.mul(columns, w[None]), 1)


class Sender:
    """Holds Δ; the receiver of the base OTs. `delta` is a cheater's: an honest sender draws it."""

    def __init__(self, channel, delta=None):
        self.delta = (int.from_bytes(channel.random(16), "little") if delta is None else delta) | 1
        self.bits = [self.delta >> i & 1 for i in range(128)]
        seeds = base_ot.Receiver(channel, self.bits[1:]).finish(channel)
        self.seeds, self.used = B.of_bytes(b"".join(seeds)), 0

    def fork(self):
        """The same Δ for another channel, from seeds that are the streams' next blocks."""
        other = object.__new__(Sender)
        other.__dict__.update(self.__dict__, seeds=B.streams(self.seeds, self.used, 1)[:, 0], used=0)
        self.used += 1
        return other

    def extend(self, channel, n):
        """v of n correlations."""
        out, owed = [], []
        for number, (start, data) in enumerate(batches(n)):
            if number >= WINDOW:
                self.verify(channel, owed.pop(0))
            length = data + 1
            q = B.zeros(128, length)
            for at, here in tiles(length):
                u = B.of_bytes(channel.recv(COLUMNS * here * 16)).reshape(COLUMNS, here, 2)
                stream = B.streams(self.seeds, self.used, here)
                self.used += here
                q[1:, at : at + here] = stream ^ B.masked(np.array(self.bits[1:])[:, None], u)
            challenge = B.of_bytes(channel.random(16))[0]
            owed.append(column_sums(q, weights(challenge, data)))
            channel.send(B.to_bytes(challenge))
            out.append(B.rows(q, min(n - start, data * 128)))
        for hashes in owed:
            self.verify(channel, hashes)
        return np.concatenate(out) if out else B.zeros(0)

    def verify(self, channel, hashes):
        answer = B.of_bytes(channel.recv(128 * 16))
        expected = hashes ^ B.masked(self.bits, np.broadcast_to(answer[0], (128, 2)))
        refuse_unless((answer[1:] == expected[1:]).all(), "the receiver's columns do not agree")


class Receiver:
    """The sender of the base OTs."""

    def __init__(self, channel):
        pairs = base_ot.Sender(channel, COLUMNS).finish(channel)
        self.seeds = [B.of_bytes(b"".join(pair[x] for pair in pairs)) for x in (0, 1)]
        self.used = 0

    def fork(self):
        """The other side's counterpart, for another channel."""
        other = object.__new__(Receiver)
        other.seeds = [B.streams(seeds, self.used, 1)[:, 0] for seeds in self.seeds]
        other.used = 0
        self.used += 1
        return other

    def extend(self, channel, n, spoil=None):
        """w of n correlations; its lowest bit is the choice, which is drawn here. A cheater's `spoil` changes U."""
        out, owed = [], []
        for number, (start, data) in enumerate(batches(n)):
            if number >= WINDOW:
                self.answer(channel, *owed.pop(0))
            length = data + 1
            t = B.zeros(128, length)
            t[0] = B.of_bytes(channel.random(16 * length))
            for at, here in tiles(length):
                zero, one = (B.streams(seeds, self.used, here) for seeds in self.seeds)
                self.used += here
                t[1:, at : at + here] = zero
                u = zero ^ one ^ t[0, at : at + here]
                channel.send(B.to_bytes(spoil(u) if spoil else u))
            owed.append((t, data))
            out.append(B.rows(t, min(n - start, data * 128)))
        for columns in owed:
            self.answer(channel, *columns)
        channel.flush()
        return np.concatenate(out) if out else B.zeros(0)

    def answer(self, channel, t, data):
        challenge = B.of_bytes(channel.recv(16))[0]
        channel.send(B.to_bytes(column_sums(t, weights(challenge, data))))


class Random:
    """Random OT: hashes of correlated OT, each under a number of its own."""

    def __init__(self, cot, sends):
        self.cot, self.sends, self.start, self.next = cot, sends, None, 0

    def extend(self, channel, n):
        """The sender's pairs (n, 2, 2), or the receiver's choices and messages."""
        if self.start is None:
            sender = channel.party if self.sends else 3 - channel.party
            transcript = Transcript("tacit cot-to-rot v2").append("session", channel.session)
            transcript.append_u64("sender", int(sender != FIRST))
            transcript.append_u64("instance", channel.next_instance())
            self.start = B.of_bytes(transcript.challenge("mitccrh start", 16))[0]
        gids = np.arange(self.next, self.next + n, dtype=np.uint64)
        self.next += n
        rows = self.cot.extend(channel, n)
        if not self.sends:
            return B.lsb(rows), B.mitccrh(self.start, gids, rows)
        both = np.stack([rows, rows ^ B.of_int(self.cot.delta)], 1)
        return B.mitccrh(self.start, gids, both)


# Blocks, of 16 bytes.
ANNOUNCED = (0).to_bytes(8, "little") + (16).to_bytes(8, "little")


def send_chosen(channel, rot, messages):
    """Chosen OT of pairs of blocks (n, 2, 2)."""
    channel.send(ANNOUNCED)
    channel.flush()
    assert channel.recv(1) == b"\1", "the receiver takes no blocks"
    pads = rot.extend(channel, len(messages))
    swap = B.bits_of(channel.recv((len(messages) + 7) // 8), len(messages)).astype(bool)
    pads[swap] = pads[swap][:, ::-1]
    channel.send(B.to_bytes(pads ^ messages))
    channel.flush()


def receive_chosen(channel, rot, choices):
    choices = np.asarray(choices, np.uint8)
    assert channel.recv(16) == ANNOUNCED, "the sender's messages are no blocks"
    channel.send(b"\1")
    channel.flush()
    random, pads = rot.extend(channel, len(choices))
    channel.send(B.pack(random ^ choices))
    masked = B.of_bytes(channel.recv(32 * len(choices))).reshape(-1, 2, 2)
    return masked[np.arange(len(choices)), choices] ^ pads


def pads(random, width):
    """What hides messages of `width` bytes (n, width), of random messages (n, 2)."""
    if width <= 16:
        return np.frombuffer(B.to_bytes(random), np.uint8).reshape(-1, 16)[:, :width]
    streams = B.streams(random, 0, -(-width // 16))
    return np.frombuffer(B.to_bytes(streams), np.uint8).reshape(len(random), -1)[:, :width]


def send_texts(channel, rot, pairs):
    """Chosen OT of pairs of texts."""
    width = max(len(text.encode()) for pair in pairs for text in pair) + 1
    channel.send((3).to_bytes(8, "little") + width.to_bytes(8, "little"))
    channel.flush()
    assert channel.recv(1) == b"\1", "the receiver takes no texts"
    random = rot.extend(channel, len(pairs))
    swap = B.bits_of(channel.recv((len(pairs) + 7) // 8), len(pairs)).astype(bool)
    random[swap] = random[swap][:, ::-1]
    filled = [[(text.encode() + b"\x80").ljust(width, b"\0") for text in pair] for pair in pairs]
    for which in zip(*[filled, np.stack([pads(random[:, side], width) for side in (0, 1)], 1)], strict=True):
        for message, pad in zip(*which, strict=True):
            channel.send(bytes(np.frombuffer(message, np.uint8) ^ pad))
    channel.flush()


def receive_strings(channel, rot, choices):
    """The form that the sender announced, and the message of each choice as it travels."""
    choices = np.asarray(choices, np.uint8)
    form, width = int.from_bytes(channel.recv(8), "little"), int.from_bytes(channel.recv(8), "little")
    channel.send(b"\1")
    channel.flush()
    random, messages = rot.extend(channel, len(choices))
    channel.send(B.pack(random ^ choices))
    masked = np.frombuffer(channel.recv(2 * width * len(choices)), np.uint8).reshape(-1, 2, width)
    return form, masked[np.arange(len(choices)), choices] ^ pads(messages, width)
