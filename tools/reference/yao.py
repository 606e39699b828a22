"""Yao's protocol with half-gates for one row, the first input being the garbler's (docs/wire/yao.md)."""

import numpy as np

import blocks as B
import kos
from wire import Transcript, refuse_unless

GARBLER, EVALUATOR = 1, 0
# Rows that run side by side, at most.
ROWS = 16


def terms(channel, circuit, role, rows, to_garbler, to_evaluator):
    """The 49 bytes that both sides compare."""
    sizes = Transcript("tacit yao sizes v1").append_u64("rows", rows)
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


def agree(channel, *what):
    mine = terms(channel, *what)
    channel.send(mine)
    theirs = channel.recv(49)
    refuse_unless(theirs[0] == mine[0] ^ 1 and theirs[1:] == mine[1:], "other terms of yao")


class Group:
    """Up to sixteen rows of a circuit: the labels of each wire, a row each, and the tables in the order of the wire."""

    def __init__(self, circuit, start, first, count):
        self.circuit, self.labels = circuit, {}
        self.starts = np.broadcast_to(start, (count, 2)).copy()
        self.starts[:, 1] ^= np.arange(first, first + count, dtype=np.uint64)
        self.numbers = circuit.numbers[count > 1]
        self.tables = B.zeros(len(self.numbers), count, 2)

    def hashes(self, numbers, a, b):
        """Of gate g: hashes of a under the number 2g, of b under 2g + 1."""
        gates = 2 * np.array(numbers, np.uint64)
        out = [np.empty_like(a), np.empty_like(b)]
        for row, start in enumerate(self.starts):
            for side, x in enumerate((a, b)):
                out[side][:, row] = B.mitccrh(start, gates + np.uint64(side), x[:, row])
        return out

    def run(self, ands):
        """`ands(gates' numbers, a, b)` gives the labels of a layer's AND gates. The outputs' labels: (bits, rows, 2)."""
        circuit, labels = self.circuit, self.labels
        for of_layer, others in circuit.layers:
            if of_layer:
                a, b = (np.stack([labels[circuit.gates[at][side]] for at in of_layer]) for side in (1, 2))
                for at, label in zip(of_layer, ands([self.numbers[at] for at in of_layer], a, b)):
                    labels[circuit.first + at] = label
            for at in others:
                _, a, b = circuit.gates[at]
                labels[circuit.first + at] = labels[a] ^ labels[b]
        return np.stack([labels[wire] for wire in circuit.output_wires])


def groups(rows):
    return [(first, min(ROWS, rows - first)) for first in range(0, rows, ROWS)]


def wires_of(circuit):
    """Wires of the garbler's input bits, and of the evaluator's."""
    others = [wire for index in range(1, len(circuit.inputs)) for wire in circuit.input_wires(index)]
    return list(circuit.input_wires(0)), others


def garble(channel, circuit, rows, to_garbler, to_evaluator):
    """The garbler's side; `rows` are the bits of the first input. The output bits of each row, if it learns them."""
    cot = kos.Iknp(kos.Sender(channel))
    delta = B.of_int(cot.delta)
    agree(channel, circuit, GARBLER, len(rows), to_garbler, to_evaluator)
    mine, theirs = wires_of(circuit)
    count = len(theirs) * len(rows)
    if count:
        v = cot.extend(channel, count)
        corrections = B.bits_of(channel.recv(-(-count // 8)), count)
        zero = (v ^ B.masked(corrections, np.broadcast_to(delta, v.shape))).reshape(len(rows), len(theirs), 2)
    start = B.of_bytes(channel.random(16))[0]
    channel.send(B.to_bytes(start))
    expected = []
    for first, lanes in groups(len(rows)):
        group = Group(circuit, start, first, lanes)
        group.labels = {0: B.zeros(lanes), 1: np.broadcast_to(delta, (lanes, 2))}
        group.labels.update((wire, zero[first : first + lanes, at]) for at, wire in enumerate(theirs))
        own = B.of_bytes(channel.random(16 * len(mine) * lanes)).reshape(len(mine), lanes, 2)
        group.labels.update(zip(mine, own))
        bits = np.array(rows[first : first + lanes]).T
        channel.send(B.to_bytes(own ^ B.masked(bits, np.broadcast_to(delta, own.shape))))

        def ands(numbers, a, b):
            (a0, b0), (a1, b1) = group.hashes(numbers, a, b), group.hashes(numbers, a ^ delta, b ^ delta)
            table_g = a0 ^ a1 ^ B.masked(B.lsb(b), np.broadcast_to(delta, a.shape))
            table_e = b0 ^ b1 ^ a
            group.tables[numbers] = np.stack([table_g, table_e], 2)
            return a0 ^ B.masked(B.lsb(a), table_g) ^ b0 ^ B.masked(B.lsb(b), table_e ^ a)

        outputs = group.run(ands)
        channel.send(B.to_bytes(group.tables))
        if to_evaluator:
            channel.send(B.pack(B.lsb(outputs).reshape(-1)))
        expected.append(outputs)
    channel.flush()
    return read_labels(channel, expected, delta) if to_garbler else None


def read_labels(channel, expected, delta):
    """The output bits of each row, by the labels that come back."""
    out = []
    returned = [B.of_bytes(channel.recv(16 * zero.size // 2)).reshape(zero.shape) for zero in expected]
    for label, zero in zip(returned, expected):
        is_zero, is_one = ((label == value).all(2) for value in (zero, zero ^ delta))
        refuse_unless((is_zero | is_one).all(), "an output label is not valid")
        out += is_one.T.astype(int).tolist()
    return out


def evaluate(channel, circuit, rows, to_garbler, to_evaluator, flip=None):
    """The evaluator's side; `rows` are the bits of all inputs but the first. A cheater's `flip` changes what it returns."""
    cot = kos.Iknp(kos.Receiver(channel))
    agree(channel, circuit, EVALUATOR, len(rows), to_garbler, to_evaluator)
    theirs, mine = wires_of(circuit)
    count = len(mine) * len(rows)
    if count:
        w = cot.extend(channel, count)
        channel.send(B.pack(B.lsb(w) ^ np.array(rows, np.uint8).reshape(-1)))
        w = w.reshape(len(rows), len(mine), 2)
    start = B.of_bytes(channel.recv(16))[0]
    decoded, held = [], []
    for first, lanes in groups(len(rows)):
        group = Group(circuit, start, first, lanes)
        group.labels = {0: B.zeros(lanes), 1: B.zeros(lanes)}
        group.labels.update((wire, w[first : first + lanes, at]) for at, wire in enumerate(mine))
        received = B.of_bytes(channel.recv(16 * len(theirs) * lanes)).reshape(len(theirs), lanes, 2)
        group.labels.update(zip(theirs, received))
        group.tables = B.of_bytes(channel.recv(16 * group.tables.size // 2)).reshape(*group.tables.shape[:2], 2, 2)

        def ands(numbers, a, b):
            tables = group.tables[numbers]
            of_a, of_b = group.hashes(numbers, a, b)
            return of_a ^ B.masked(B.lsb(a), tables[:, :, 0]) ^ of_b ^ B.masked(B.lsb(b), tables[:, :, 1] ^ a)

        outputs = group.run(ands)
        if to_evaluator:
            bits = outputs.size // 2
            colours = B.bits_of(channel.recv(-(-bits // 8)), bits).reshape(outputs.shape[:2])
            decoded += (B.lsb(outputs) ^ colours).T.astype(int).tolist()
        held.append(outputs)
    if to_garbler:
        for outputs in held:
            channel.send(B.to_bytes(flip(outputs) if flip else outputs))
        channel.flush()
    return decoded if to_evaluator else None
