"""Links (docs/wire/vole-psi.md): identifiers that match where elements do."""

import blocks as B
import psi
import vole
from blake3 import keyed
from wire import FIRST, Transcript, refuse_unless

MAGIC = b"tacit-psi link-1"
DOMAIN = "tacit-psi link v1"


class Direction(psi.Run):
    """A direction of a run: VOLE-PSI up to its coins."""

    def __init__(self, channel, elements, malicious, receives, announcements, before):
        self.channel, self.elements, self.malicious, self.receives = channel, elements, malicious, receives
        self.announcements = announcements if receives else announcements[::-1]
        counts = [int.from_bytes(one[24:], "little") for one in self.announcements]
        self.sizes, self.before = psi.Sizes(*counts, malicious), before
        if not malicious:
            pairs = counts[1] * (counts[1] + counts[0])
            self.sizes.bits = min(128, 42 + (pairs - 1).bit_length())

    def start(self):
        transcript = Transcript(DOMAIN)
        return transcript.append("terms", self.before) if self.before else transcript

    def values(self):
        """The value of each element."""
        self._seeds()
        sums = self._receiver() if self.receives else self._sender()
        key = self._coins()
        pairs = zip(self.hashed, sums, strict=True)
        return [keyed(key, of.to_bytes(16, "little") + B.to_bytes(total))[:16] for (of, _), total in pairs]

    def _receiver(self):
        channel, store = self.channel, self.sizes.store
        source = vole.Receiver(channel, self.malicious)
        u, w = source.extend(channel, store.slots)
        channel.send(B.to_bytes(store.encode(*zip(*self.hashed), channel.random) ^ u))
        return store.decode(w, [key for key, _ in self.hashed])

    def _sender(self):
        channel, store = self.channel, self.sizes.store
        source = vole.Sender(channel, self.malicious)
        delta = B.of_int(source.delta)
        v = source.extend(channel, store.slots)
        k = v ^ B.mul(B.of_bytes(channel.recv(16 * store.slots)), delta)
        keys, values = zip(*self.hashed)
        return store.decode(k, keys) ^ B.mul(B.of_ints(values), delta)


def run(channel, elements, malicious, between=lambda place, data: data):
    """The identifiers of all elements, and the number of the run, in base 16. Sets of up to 1,024 elements, where stores
    are polynomials. A cheater changes by `between` what it sends at a place, or what is bound there."""
    mine = psi.announcement(len(elements), malicious, psi.BOTH, MAGIC)
    channel.send(mine)
    theirs = channel.recv(32)
    count = int.from_bytes(theirs[24:], "little")
    refuse_unless(theirs == psi.announcement(count, malicious, psi.BOTH, MAGIC), "another announcement")
    is_first = channel.party == FIRST
    if elements and count:
        values, before = [], b""
        for receives in (is_first, not is_first):
            way = Direction(channel, elements, malicious, receives, [mine, theirs], before)
            values.append(way.values())
            transcript = way.transcript
            before = between("before", transcript.copy().challenge("first direction", 32))
    else:
        transcript = Transcript(DOMAIN).append("session", channel.session)
        transcript.append_u64("instance", channel.next_instance())
        first, second = (mine, theirs) if is_first else (theirs, mine)
        transcript.append("first", first).append("second", second)
    words = [transcript.copy().challenge(f"{side} confirms", 32) for side in ("first", "second")]
    ours, expected = words if is_first else words[::-1]
    channel.send(between("confirmation", ours))
    channel.flush()
    refuse_unless(channel.recv(32) == expected, "it does not confirm what both sides agreed on")
    name = transcript.copy().challenge("run", 32)[:8].hex()
    if not elements or not count:
        return [channel.random(16).hex() for _ in elements], name
    key = transcript.copy().challenge("identifiers", 32)
    return [keyed(key, one + other)[:16].hex() for one, other in zip(*values, strict=True)], name
