"""KOS and IKNP, correlated OT with and without a check (docs/wire/ot.md), and random and chosen OT from it."""

import numpy as np

import base_ot
import blocks as B
from wire import FIRST, Transcript, refuse_unless

COLUMNS, TILE, BATCH, WINDOW = 127, 64, 512, 4


def batches(n, step=BATCH - 1):
    """(first OT, blocks of data) of each batch of a request; `step` blocks are a whole batch."""
    left = -(-n // 128)
    return [(at * 128, min(step, left - at)) for at in range(0, left, step)]


def tiles(length):
    return [(at, min(TILE, length - at)) for at in range(0, length, TILE)]


def weights(challenge, data):
    one = B.of_int(1)[None]
    return np.concatenate([B.Prg(challenge).take(data), one])


def column_sums(columns, w):
    """Σ w[j]·columns[i][j] of every column i."""
    return B.xor_all(B.mul(columns, w[None]), 1)


class Streams:
    """The streams of seeds, of which each extension takes the next blocks."""

    def start(self, seeds):
        self.seeds, self.used = seeds, 0

    def stretch(self, count):
        """The next blocks of all streams: (seeds, count, 2)."""
        self.used += count
        return B.streams(self.seeds, self.used - count, count)

    def fork(self):
        """The same for another channel, from seeds that are the streams' next blocks."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.start(self.stretch(1)[:, 0])
        return other


class Sender(Streams):
    """Holds Δ; the receiver of the base OTs. `delta` is a cheater's: an honest sender draws it."""

    # Columns that the receiver sends for a tile.
    width = COLUMNS

    def __init__(self, channel, delta=None):
        self.begin(channel, delta)
        self.finish(channel)

    def begin(self, channel, delta):
        self.delta = (int.from_bytes(channel.random(16), "little") if delta is None else delta) | 1
        self.bits = [self.delta >> i & 1 for i in range(128)]
        self.base = base_ot.Receiver(channel, self.bits[1:])

    def finish(self, channel):
        self.start(B.of_bytes(b"".join(self.base.finish(channel))))

    def columns(self, u):
        """q of a tile: (128, blocks, 2)."""
        mine = self.stretch(u.shape[1])
        return np.concatenate([B.zeros(1, u.shape[1]), mine ^ B.masked(np.array(self.bits[1:])[:, None], u)])

    def tile(self, channel, length):
        """q of a tile, and what the receiver sent for it."""
        u = B.of_bytes(channel.recv(16 * self.width * length)).reshape(self.width, length, 2)
        return self.columns(u), u

    def extend(self, channel, n):
        """v of n correlations."""
        out, owed = [], []
        for number, (start, data) in enumerate(batches(n)):
            if number >= WINDOW:
                self.verify(channel, owed.pop(0))
            q = np.concatenate([self.tile(channel, length)[0] for _, length in tiles(data + 1)], 1)
            challenge = B.of_bytes(channel.random(16))[0]
            owed.append(column_sums(q, weights(challenge, data)))
            channel.send(B.to_bytes(challenge))
            out.append(B.rows(q, min(n - start, data * 128)))
        for sums in owed:
            self.verify(channel, sums)
        return np.concatenate(out) if out else B.zeros(0)

    def verify(self, channel, sums):
        """Receives the answer to a challenge, and returns its bytes."""
        data = channel.recv(128 * 16)
        answer = B.of_bytes(data)
        expected = sums ^ B.masked(self.bits, np.broadcast_to(answer[0], (128, 2)))
        refuse_unless((answer[1:] == expected[1:]).all(), "the receiver's columns do not agree")
        return data


class Receiver(Streams):
    """The sender of the base OTs."""

    def __init__(self, channel):
        self.begin(channel)
        self.finish(channel)

    def begin(self, channel):
        self.base = base_ot.Sender(channel, COLUMNS)

    def finish(self, channel):
        pairs = self.base.finish(channel)
        self.start(B.of_bytes(b"".join(pair[x] for x in (0, 1) for pair in pairs)))

    def columns(self, r):
        """t of a tile, and what is sent for it."""
        zero, one = self.stretch(len(r)).reshape(2, COLUMNS, len(r), 2)
        return np.concatenate([r[None], zero]), zero ^ one ^ r

    def tile(self, channel, r):
        """t of a tile with the choices r, and what was sent for it."""
        t, u = self.columns(r)
        channel.send(B.to_bytes(u))
        return t, u

    def extend(self, channel, n):
        """w of n correlations; its lowest bit is the choice, which is drawn here."""
        out, owed = [], []
        for number, (start, data) in enumerate(batches(n)):
            if number >= WINDOW:
                self.answer(channel, *owed.pop(0))
            r = B.of_bytes(channel.random(16 * (data + 1)))
            t = np.concatenate([self.tile(channel, r[at : at + size])[0] for at, size in tiles(data + 1)], 1)
            owed.append((t, data))
            out.append(B.rows(t, min(n - start, data * 128)))
        for columns in owed:
            self.answer(channel, *columns)
        channel.flush()
        return np.concatenate(out) if out else B.zeros(0)

    def answer(self, channel, t, data):
        channel.send(B.to_bytes(self.challenged(channel, t, data)))

    def challenged(self, channel, t, data):
        """Receives a challenge, and returns the sums that answer it."""
        challenge = B.of_bytes(channel.recv(16))[0]
        return column_sums(t, weights(challenge, data))


class Iknp:
    """Extensions without a check, over the columns of a party of either side."""

    def __init__(self, party):
        self.party, self.sends = party, isinstance(party, Sender)
        self.delta = party.delta if self.sends else None

    def fork(self):
        return Iknp(self.party.fork())

    def extend(self, channel, n):
        """v, or w with random choices in the lowest bits."""
        out = []
        for at, length in tiles(-(-n // 128)):
            what = length if self.sends else B.of_bytes(channel.random(16 * length))
            out.append(B.rows(self.party.tile(channel, what)[0], min(n - at * 128, length * 128)))
        channel.flush()
        return np.concatenate(out)


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
