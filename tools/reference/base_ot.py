"""Base OT `mrr21` (docs/wire/base-ot.md): the receiver's message programs a public function at its choices."""

import ristretto
from blake3 import Blake3, keyed
from wire import FIRST, framed, refuse_unless, u64

T_BYTES = 48
PHI_BYTES = ristretto.BYTES + T_BYTES


class Run:
    """What every hash of one batch binds."""

    def __init__(self, channel, sender_party, count):
        instance = channel.next_instance()
        hasher = Blake3.derive_key("tacit 2026 base ot run v1")
        hasher.update(channel.session + framed(b"mrr21"))
        for number in (1, 1 if sender_party == FIRST else 2, instance, count):
            hasher.update(u64(number))
        self.key, self.count = hasher.digest(), count

    def oracle(self, label, *messages):
        key = keyed(self.key, b"".join(framed(part) for part in (label, *messages)))
        return lambda index, branch, data, length: keyed(key, u64(index) + bytes([branch]) + data, length)


def scalar(channel):
    return int.from_bytes(channel.random(64), "little") % ristretto.ORDER


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def point(data):
    out = ristretto.decode(data)
    refuse_unless(out is not None, "not a canonical group element")
    refuse_unless(data != bytes(32), "the group's identity where none may be")
    return out


class Sender:
    """Ends with two messages of 16 bytes an OT."""

    def __init__(self, channel, count):
        self.run, self.secret = Run(channel, channel.party, count), scalar(channel)
        self.message = ristretto.encode(ristretto.multiply(self.secret, ristretto.GENERATOR))
        channel.send(self.message)

    def finish(self, channel):
        run = self.run
        reply = channel.recv(run.count * PHI_BYTES)
        to_group, to_t = run.oracle(b"popf H"), run.oracle(b"popf H'")
        pads = run.oracle(b"pad", self.message, reply)
        out = []
        for i in range(run.count):
            phi = reply[i * PHI_BYTES : (i + 1) * PHI_BYTES]
            s, t = phi[:32], phi[32:]
            base, pair = point(s), []
            for x in (0, 1):
                uniform = to_group(i, x, xor(t, to_t(i, x, s, T_BYTES)), 64)
                value = ristretto.add(base, ristretto.from_uniform(uniform))
                pair.append(pads(i, x, ristretto.encode(ristretto.multiply(self.secret, value)), 16))
            out.append(pair)
        return out


class Receiver:
    """Ends with the message of each choice."""

    def __init__(self, channel, choices):
        self.run, self.choices = Run(channel, 3 - channel.party, len(choices)), choices
        to_group, to_t = self.run.oracle(b"popf H"), self.run.oracle(b"popf H'")
        self.secrets, self.message = [scalar(channel) for _ in choices], b""
        for i, x in enumerate(choices):
            r = channel.random(T_BYTES)
            y = ristretto.multiply_often(self.secrets[i], ristretto.GENERATOR)
            s = ristretto.encode(ristretto.add(y, ristretto.negate(ristretto.from_uniform(to_group(i, x, r, 64)))))
            self.message += s + xor(r, to_t(i, x, s, T_BYTES))
        channel.send(self.message)

    def finish(self, channel):
        theirs = channel.recv(32)
        big_a = point(theirs)
        pads = self.run.oracle(b"pad", theirs, self.message)
        keys = [ristretto.encode(ristretto.multiply_often(b, big_a)) for b in self.secrets]
        return [pads(i, x, key, 16) for i, (x, key) in enumerate(zip(self.choices, keys))]
