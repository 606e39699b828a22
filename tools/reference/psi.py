"""Rows by VOLE-PSI (docs/wire/vole-psi.md): which keys both sides have."""

import numpy as np

import blocks as B
import vole
from blake3 import Blake3, keyed
from store import store
from wire import FIRST, Transcript, commitment, framed, refuse_unless, u64

MAGIC = b"tacit-psi vole-7"
ME, PEER, BOTH = 0, 1, 2


def element(*parts):
    """What stands for a row's key, from the normal forms of its columns."""
    key = Blake3.derive_key("tacit 2026 record key v1").digest()
    return keyed(key, b"".join(framed(part.encode()) for part in parts))


def announcement(count, malicious, learns, magic=MAGIC):
    return magic + bytes([int(malicious), learns]) + bytes(6) + u64(count)


class Sizes:
    """What follows from the sizes of both sets."""

    def __init__(self, receiver, sender, malicious):
        pairs = max(sender * (sender + receiver), 1)
        self.store, self.sender = store(receiver, sender), sender
        self.bits = 128 if malicious else min(128, 41 + (pairs - 1).bit_length())
        self.rest = -(-(self.bits - (sender.bit_length() - 1)) // 8)
        self.prefix = max(self.bits - 8 * self.rest, 0)
        self.bitmap = sender + (1 << self.prefix)


def halves(data):
    return int.from_bytes(data[:16], "little"), int.from_bytes(data[16:], "little")


class Run:
    """One side of a run; `elements` are 32 bytes each, all different."""

    def __init__(self, channel, elements, *, malicious, learns, announce=None, auto=False):
        """`announce` is a cheater's number of elements; with `auto` the protocol was not named."""
        if auto:
            channel.send(u64(len(elements)))
            said = channel.recv_u64()
        self.channel, self.elements, self.malicious, self.learns = channel, elements, malicious, learns
        mine = announcement(len(elements) if announce is None else announce, malicious, learns)
        channel.send(mine)
        theirs = channel.recv(32)
        converse = {ME: PEER, PEER: ME, BOTH: BOTH}[learns]
        count = int.from_bytes(theirs[24:], "little")
        refuse_unless(theirs == announcement(count, malicious, converse), "another announcement")
        refuse_unless(not auto or count == said, "another number of elements than was said before")
        self.peer = count
        own = int.from_bytes(mine[24:], "little")
        smaller = own < count or own == count and channel.party == FIRST
        self.receives = learns == ME or learns == BOTH and smaller
        self.announcements = [mine, theirs] if self.receives else [theirs, mine]
        if own and count:
            self.sizes = Sizes(*([own, count] if self.receives else [count, own]), malicious)

    def start(self):
        return Transcript("tacit-psi vole v3")

    def _seeds(self):
        channel, sizes = self.channel, self.sizes
        transcript = self.start().append("session", channel.session)
        transcript.append_u64("instance", channel.next_instance())
        transcript.append_u64("first receives", int(self.receives == (channel.party == FIRST)))
        transcript.append("receiver", self.announcements[0]).append("sender", self.announcements[1])
        for label, number in zip(("bins", "third", "dense"), sizes.store.numbers):
            transcript.append_u64(label, number)
        transcript.append_u64("tag bits", sizes.bits)
        self.context = transcript.copy().challenge("coin", 32)
        self.coin, self.opening = channel.random(32), channel.random(32)
        if self.receives:
            self.salt = channel.random(32)
            channel.send(self.salt)
            committed = channel.recv(32)
        else:
            committed = commitment(self.context, self.coin, self.opening)
            channel.send(committed)
            self.salt = channel.recv(32)
        transcript.append("salt", self.salt)
        self.h = transcript.copy().challenge("H", 32)
        self.committed, self.transcript = committed, transcript.append("commitment", committed)
        self.hashed = [halves(keyed(self.h, element)) for element in self.elements]

    def _coins(self):
        channel = self.channel
        if self.receives:
            channel.send(self.coin)
            pair = [self.coin, channel.recv(32)]
            expected = commitment(self.context, pair[1], channel.recv(32))
            refuse_unless(expected == self.committed, "the coin is not the one committed to")
        else:
            pair = [channel.recv(32), self.coin]
            channel.send(self.coin)
            channel.send(self.opening)
        self.transcript.append("receiver's coin", pair[0]).append("sender's coin", pair[1])
        return self.transcript.copy().challenge("Ho", 32)

    def _tags(self, sums):
        """(tag, proof, index of the element), ascending."""
        key, keys = self._coins(), [k for k, _ in self.hashed]
        shift, out = 128 - self.sizes.bits, []
        for at, (of_element, total) in enumerate(zip(keys, sums)):
            data = keyed(key, of_element.to_bytes(16, "little") + B.to_bytes(total))
            tag, _ = halves(data)
            out.append((tag >> shift << shift, data[16:], at))
        return sorted(out)

    def run(self):
        """The indices of elements that the peer has too, ascending; None if this side does not learn them."""
        if not self.elements or not self.peer:
            return None if self.learns == PEER else []
        self._seeds()
        return self._receive() if self.receives else self._send()

    def _receive(self):
        channel, sizes = self.channel, self.sizes
        source = vole.Receiver(channel, self.malicious)
        slots, of_runs = None, []
        for size in vole.runs(sizes.store.slots):
            u, w = source.extend(channel, size)
            if slots is None:
                slots = sizes.store.encode(*zip(*self.hashed), channel.random)
            start = sum(map(len, of_runs))
            channel.send(B.to_bytes(slots[start : start + size] ^ u))
            of_runs.append(w)
        w = np.concatenate(of_runs)
        mine = self._tags(sizes.store.decode(w, [key for key, _ in self.hashed]))
        theirs = read_tags(sizes, channel.recv(-(-sizes.bitmap // 8)), channel.recv(sizes.sender * sizes.rest))
        places = {tag: place for place, tag in enumerate(theirs)}
        found = [(places[tag], proof, at) for tag, proof, at in mine if tag in places]
        if self.learns == BOTH:
            channel.send(u64(len(found)))
            for place, proof, _ in sorted(found):
                channel.send(place.to_bytes(4, "little") + proof)
            channel.flush()
        return sorted(at for _, _, at in found)

    def _send(self):
        channel, sizes = self.channel, self.sizes
        source = vole.Sender(channel, self.malicious)
        delta, of_runs = B.of_int(source.delta), []
        for size in vole.runs(sizes.store.slots):
            v = source.extend(channel, size)
            of_runs.append(v ^ B.mul(B.of_bytes(channel.recv(16 * size)), delta))
        k = np.concatenate(of_runs)
        keys, values = zip(*self.hashed)
        sums = sizes.store.decode(k, keys) ^ B.mul(B.of_ints(values), delta)
        tags = self._tags(sums)
        channel.send(write_tags(sizes, [tag for tag, _, _ in tags]))
        channel.flush()
        if self.learns != BOTH:
            return None
        found, last = [], -1
        count = channel.recv_u64()
        refuse_unless(count <= len(tags), "more matches than tags")
        for _ in range(count):
            place, proof = int.from_bytes(channel.recv(4), "little"), channel.recv(16)
            refuse_unless(last < place < len(tags), "positions of matches do not ascend")
            refuse_unless(proof == tags[place][1], "a match without proof")
            found.append(tags[place][2])
            last = place
        return sorted(found)


def write_tags(sizes, tags):
    bits = np.zeros(sizes.bitmap, np.uint8)
    for at, tag in enumerate(tags):
        bits[at + (tag >> 128 - sizes.prefix if sizes.prefix else 0)] = 1
    shift = 128 - sizes.prefix - 8 * sizes.rest
    rests = [(tag >> shift & (1 << 8 * sizes.rest) - 1).to_bytes(sizes.rest, "little") for tag in tags]
    return B.pack(bits) + b"".join(rests)


def read_tags(sizes, bitmap, rests):
    bits = B.bits_of(bitmap, sizes.bitmap)
    refuse_unless(bits.sum() == sizes.sender and not bits[-1], "the prefixes are not those of as many tags")
    shift = 128 - sizes.prefix - 8 * sizes.rest
    out = []
    for at, place in enumerate(np.flatnonzero(bits)):
        rest = int.from_bytes(rests[at * sizes.rest : (at + 1) * sizes.rest], "little")
        out.append((int(place) - at) << 128 - sizes.prefix | rest << shift)
    refuse_unless(all(a < b for a, b in zip(out, out[1:])), "the tags do not ascend")
    return out
