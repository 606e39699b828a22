"""Circuits from Bristol Fashion files, their digest, and the order of their AND gates (docs/wire/yao.md)."""

import struct

from wire import Transcript

ZERO, ONE, FIRST_INPUT = 0, 1, 2
XOR, AND, INV = 0, 1, 2


class Circuit:
    """Gate i is (kind, a, b) and writes wire FIRST_INPUT + input bits + i; of an inverter b is the constant one."""

    def __init__(self, inputs, outputs, gates, wires):
        self.inputs, self.outputs, self.gates, self.output_wires = inputs, outputs, gates, wires
        self.first = FIRST_INPUT + sum(inputs)
        levels = [0] * self.first
        # Gates by AND depth, in the file's order within each.
        self.layers = {}
        for at, (kind, a, b) in enumerate(gates):
            level = max(levels[a], levels[b]) + (kind == AND)
            levels.append(level)
            self.layers.setdefault(level, ([], []))[kind != AND].append(at)
        self.layers = [self.layers[level] for level in sorted(self.layers)]
        # The numbers of AND gates for one row, and for several side by side.
        by_depth = [at for ands, _ in self.layers for at in ands]
        self.numbers = [{at: number for number, at in enumerate(order)} for order in (by_depth, sorted(by_depth))]

    def input_wires(self, index):
        start = FIRST_INPUT + sum(self.inputs[:index])
        return range(start, start + self.inputs[index])

    def digest(self):
        out = Transcript("tacit circuit v1")
        for label, widths in (("inputs", self.inputs), ("outputs", self.outputs)):
            out.append_u64(label, len(widths))
            for width in widths:
                out.append_u64("width", width)
        out.append_u64("gates", len(self.gates))
        for at in range(0, len(self.gates), 4096):
            chunk = self.gates[at : at + 4096]
            out.append("chunk", b"".join(struct.pack("<BII", kind, a, b) for kind, a, b in chunk))
        for wire in self.output_wires:
            out.append_u64("output", wire)
        return out.challenge("digest", 32)


def read(text):
    """A circuit in Bristol Fashion of XOR, AND, INV, EQ and EQW."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    _, wires = map(int, lines[0])
    inputs, outputs = ([int(width) for width in line[1:]] for line in lines[1:3])
    first = FIRST_INPUT + sum(inputs)
    names, gates = dict(enumerate(range(FIRST_INPUT, first))), []
    for *numbers, kind in lines[3:]:
        *ins, out = map(int, numbers[2:])
        if kind in ("EQ", "EQW"):
            names[out] = names[ins[0]] if kind == "EQW" else (ZERO, ONE)[ins[0]]
            continue
        names[out] = first + len(gates)
        if kind == "INV":
            gates.append((INV, names[ins[0]], ONE))
        else:
            gates.append(({"XOR": XOR, "AND": AND}[kind], names[ins[0]], names[ins[1]]))
    return Circuit(inputs, outputs, gates, [names[wire] for wire in range(wires - sum(outputs), wires)])
