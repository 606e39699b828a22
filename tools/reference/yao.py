"""Yao's protocol with half-gates for one row, the first input being the garbler's (docs/wire/yao.md)."""

import numpy as np

import blocks as B
import kos
from wire import Transcript, refuse_unless

GARBLER, EVALUATOR = 1, 0


def terms(channel, circuit, role, to_garbler, to_evaluator):
    """The 49 bytes that both sides compare."""
    sizes = Transcript("tacit yao sizes v1").append_u64("rows", 1)
    for label, widths in (("inputs", circuit.inputs), ("outputs", circuit.outputs)):
        sizes.append_u64(label, len(widths))
        for width in widths:
            sizes.append_u64("width", width)
    rest = Transcript("tacit yao v1").append("session", channel.session)
    rest.append("scheme", b"half-gates").append("function", circuit.digest())
    for index in range(len(circuit.inputs)):
        rest.append_u64("owner", int(index == 0))
    head = role | to_garbler << 1 | to_evaluator << 2
    return bytes([head]) + sizes.challenge("sizes", 16) + rest.challenge("terms", 32)


def agree(channel, circuit, role, to_garbler, to_evaluator):
    mine = terms(channel, circuit, role, to_garbler, to_evaluator)
    channel.send(mine)
    theirs = channel.recv(49)
    refuse_unless(theirs[0] == mine[0] ^ 1 and theirs[1:] == mine[1:], "other terms of yao")


def layered(circuit, labels, one, ands):
    """Runs the circuit; `ands(first gate's number, a, b)` gives the labels of a layer's AND gates."""
    number = 0
    for of_layer, others in circuit.layers:
        if of_layer:
            a, b = (B.of_ints([labels[circuit.gates[at][side]] for at in of_layer]) for side in (1, 2))
            for at, label in zip(of_layer, ands(number, a, b)):
                labels[circuit.first + at] = B.to_int(label)
            number += len(of_layer)
        for at in others:
            _, a, b = circuit.gates[at]
            labels[circuit.first + at] = labels[a] ^ labels[b]
    return [labels[wire] for wire in circuit.output_wires]


def hashes(start, number, a, b):
    """Of gate g: hashes of a under the number 2g, of b under 2g + 1."""
    gates = 2 * np.arange(number, number + len(a), dtype=np.uint64)
    return B.mitccrh(start, gates, a), B.mitccrh(start, gates + B.ONE, b)


class Iknp:
    """IKNP: KOS without its check."""

    def __init__(self, party):
        self.party, self.sends = party, isinstance(party, kos.Sender)
        self.delta = party.delta if self.sends else None

    def extend(self, channel, n):
        """v, or w with random choices in the lowest bits."""
        party, out = self.party, []
        for at, length in kos.tiles(-(-n // 128)):
            here = min(n - at * 128, length * 128)
            columns = B.zeros(128, length)
            if self.sends:
                u = B.of_bytes(channel.recv(kos.COLUMNS * length * 16)).reshape(kos.COLUMNS, length, 2)
                columns[1:] = B.streams(party.seeds, party.used, length) ^ B.masked(
                    np.array(party.bits[1:])[:, None], u
                )
            else:
                columns[0] = B.of_bytes(channel.random(16 * length))
                columns[1:], one = (B.streams(seeds, party.used, length) for seeds in party.seeds)
                channel.send(B.to_bytes(columns[1:] ^ one ^ columns[0]))
            party.used += length
            out.append(B.rows(columns, here))
        channel.flush()
        return np.concatenate(out)


def garble(channel, circuit, bits, to_garbler, to_evaluator, spoil=None):
    """The garbler's side; `bits` are those of the first input. A cheater's `spoil` changes tables."""
    cot = Iknp(kos.Sender(channel))
    delta, d = cot.delta, B.of_int(cot.delta)
    agree(channel, circuit, GARBLER, to_garbler, to_evaluator)
    mine, theirs = circuit.input_wires(0), [w for i in range(1, len(circuit.inputs)) for w in circuit.input_wires(i)]
    labels = {0: 0, 1: delta}
    if theirs:
        v = cot.extend(channel, len(theirs))
        corrections = B.bits_of(channel.recv(-(-len(theirs) // 8)), len(theirs))
        zero = v ^ B.masked(corrections, np.broadcast_to(d, v.shape))
        labels.update((wire, B.to_int(label)) for wire, label in zip(theirs, zero))
    start = B.of_bytes(channel.random(16))[0]
    channel.send(B.to_bytes(start))
    own = B.of_bytes(channel.random(16 * len(mine))) if mine else B.zeros(0)
    labels.update((wire, B.to_int(label)) for wire, label in zip(mine, own))
    channel.send(B.to_bytes(own ^ B.masked(bits, np.broadcast_to(d, own.shape))))

    def ands(number, a, b):
        (a0, b0), (a1, b1) = hashes(start, number, a, b), hashes(start, number, a ^ d, b ^ d)
        table_g = a0 ^ a1 ^ B.masked(B.lsb(b), np.broadcast_to(d, a.shape))
        table_e = b0 ^ b1 ^ a
        tables = np.stack([table_g, table_e], 1)
        channel.send(B.to_bytes(spoil(tables) if spoil else tables))
        return a0 ^ B.masked(B.lsb(a), table_g) ^ b0 ^ B.masked(B.lsb(b), table_e ^ a)

    outputs = layered(circuit, labels, delta, ands)
    if to_evaluator:
        channel.send(B.pack([label & 1 for label in outputs]))
    channel.flush()
    if not to_garbler:
        return None
    returned = [int.from_bytes(channel.recv(16), "little") for _ in outputs]
    refuse_unless(all(r in (zero, zero ^ delta) for r, zero in zip(returned, outputs)), "an output label is not valid")
    return [int(r != zero) for r, zero in zip(returned, outputs)]


def evaluate(channel, circuit, bits, to_garbler, to_evaluator, flip=None):
    """The evaluator's side; `bits` are those of all inputs but the first. A cheater's `flip` changes what it returns."""
    cot = Iknp(kos.Receiver(channel))
    agree(channel, circuit, EVALUATOR, to_garbler, to_evaluator)
    theirs, mine = circuit.input_wires(0), [w for i in range(1, len(circuit.inputs)) for w in circuit.input_wires(i)]
    labels = {0: 0, 1: 0}
    if mine:
        w = cot.extend(channel, len(mine))
        channel.send(B.pack(B.lsb(w) ^ np.asarray(bits, np.uint8)))
        labels.update((wire, B.to_int(label)) for wire, label in zip(mine, w))
    start = B.of_bytes(channel.recv(16))[0]
    received = B.of_bytes(channel.recv(16 * len(theirs)))
    labels.update((wire, B.to_int(label)) for wire, label in zip(theirs, received))

    def ands(number, a, b):
        tables = B.of_bytes(channel.recv(32 * len(a))).reshape(-1, 2, 2)
        of_a, of_b = hashes(start, number, a, b)
        return of_a ^ B.masked(B.lsb(a), tables[:, 0]) ^ of_b ^ B.masked(B.lsb(b), tables[:, 1] ^ a)

    outputs = layered(circuit, labels, 0, ands)
    decoded = None
    if to_evaluator:
        colours = B.bits_of(channel.recv(-(-len(outputs) // 8)), len(outputs))
        decoded = [(label & 1) ^ int(colour) for label, colour in zip(outputs, colours)]
    if to_garbler:
        for label in flip(outputs) if flip else outputs:
            channel.send(label.to_bytes(16, "little"))
        channel.flush()
    return decoded
