"""The vectors of docs/wire: primitives, and whole runs between two references whose randomness comes from seeds.

python3 tools/reference/vectors.py > docs/wire/vectors.json
"""

import json
import socket
import threading

import base_ot
import blocks as B
import circuit
import kos
import psi
import ristretto
import store
import vole
import wire
import yao
from blake3 import Blake3, hashed, keyed

SEEDS = {wire.FIRST: bytes(range(32)), wire.SECOND: bytes(range(32, 64))}
# Two bits of either side; outputs: their sum, and whether the garbler's number is not the larger one.
CIRCUIT = """14 18
2 2 2
2 3 1

2 1 0 2 4 XOR
2 1 0 2 5 AND
2 1 1 3 6 XOR
2 1 1 3 7 AND
2 1 6 5 8 XOR
2 1 6 5 9 AND
2 1 7 9 10 XOR
1 1 0 11 INV
2 1 11 2 12 AND
1 1 1 13 INV
1 1 4 14 EQW
1 1 8 15 EQW
1 1 10 16 EQW
2 1 13 12 17 XOR
"""


def primitives():
    transcript = wire.Transcript("example").append("label", b"data")
    first = transcript.challenge("draw", 16)
    recording = wire.Recording()
    recording.sent.update(b"abc")
    recording.received.update(b"defg")
    zero, counted = bytes(16), bytes(range(16))
    uniform = keyed(bytes(32), b"uniform", 64)
    x = B.of_bytes(counted)
    columns = B.Prg(B.of_int(7)).take(128)[:, None]
    layout = vole.Layout(256)
    return {
        "blake3 of abc": hashed(b"abc").hex(),
        "blake3 keyed, key 00..1f, of abc, 40 bytes": keyed(bytes(range(32)), b"abc", 40).hex(),
        "blake3 derive_key, context example, of abc": Blake3.derive_key("example").update(b"abc").digest().hex(),
        "aes, key and block zero": B.to_bytes(B.Prg(B.of_int(0)).take(1)).hex(),
        "prg of seed 00..0f, three blocks": B.to_bytes(B.Prg(x[0]).take(3)).hex(),
        "ccr under key zero of 00..0f": B.to_bytes(B.ccr(B.round_keys(B.of_int(0)), x)).hex(),
        "mitccrh, start 00..0f, gid 5, of zero": B.to_bytes(B.mitccrh(x[0], [5], B.of_bytes(zero))).hex(),
        "field, x^127 times x": B.to_bytes(B.mul(B.of_int(1 << 127), B.of_int(2))).hex(),
        "field, 00..0f squared": B.to_bytes(B.mul(x, x)).hex(),
        "field, inverse of 00..0f": B.inverse_int(B.to_int(x[0])).to_bytes(16, "little").hex(),
        "rows of 128 columns, the blocks of prg of seed 7: blake3": hashed(B.to_bytes(B.rows(columns, 128))).hex(),
        "transcript example, label: data, draw of 16": first.hex(),
        "the same, a second draw of 16": transcript.challenge("draw", 16).hex(),
        "recording at the first party: sent abc, received defg": recording.digest(wire.FIRST).hex(),
        "commitment, context c, message m, opening zero": wire.commitment(b"c", b"m", bytes(32)).hex(),
        "ristretto255 of 64 uniform bytes: keyed blake3, key zero, of uniform": [
            uniform.hex(),
            ristretto.encode(ristretto.from_uniform(uniform)).hex(),
        ],
        "element of the key abc": psi.element("abc").hex(),
        "code, seed zero, 108,544 positions that are the prg of seed 1: first 256 results, blake3": hashed(
            B.to_bytes(
                vole.Code(B.of_int(0), layout.positions).encode(B.Prg(B.of_int(1)).take(layout.positions)[None], 256)[0]
            )
        ).hex(),
        "store, keys 1, 2 and 3, values 4, 5 and 6": B.to_bytes(store.interpolate([1, 2, 3], [4, 5, 6])).hex(),
        "digest of the circuit below": circuit.read(CIRCUIT).digest().hex(),
    }


class Noted(wire.Channel):
    """A channel that notes what it sends."""

    def __init__(self, sock, party, notes):
        super().__init__(sock, party)
        self.seed, self.notes = SEEDS[party], notes

    def send(self, data):
        super().send(data)
        self.notes.append(shown(data))

    def frame(self, kind, payload):
        super().frame(kind, payload)
        if kind == wire.HELLO:
            self.notes.append(shown(payload))


def shown(data):
    """A message as it is, or where it is long its length and its hash."""
    return data.hex() if len(data) <= 64 else f"{len(data)} bytes, blake3 {hashed(data).hex()}"


def run(job, parameters, first, second):
    """Both sides of a run: what they sent, and what they hold at the end."""
    socks, notes, results = socket.socketpair(), {}, {}
    protocol, role, peer_role = job

    def side(party, roles, body):
        channel = Noted(socks[party - 1], party, notes.setdefault(party, []))
        wire.greet(channel, (protocol, *roles), parameters)
        results[party] = body(channel)
        wire.finish(channel)

    other = threading.Thread(target=side, args=(wire.SECOND, (peer_role, role), second))
    other.start()
    side(wire.FIRST, (role, peer_role), first)
    other.join()
    return {
        "job": [protocol, role, peer_role],
        "parameters": parameters,
        "sent by the first party": notes[1],
        "sent by the second party": notes[2],
        "result of the first party": results[1],
        "result of the second party": results[2],
    }


def transfers(kind, count):
    parameters = {"base-ot": "mrr21", "channels": "1", "count": str(count), "kind": kind, "link": "loopback"}
    parameters |= {"protocol": "kos", "security": "malicious"}

    def sender(channel):
        cot = kos.Sender(channel)
        if kind == "cot":
            return {"delta": cot.delta.to_bytes(16, "little").hex(), "v": shown(B.to_bytes(cot.extend(channel, count)))}
        rot = kos.Random(cot, True)
        if kind == "rot":
            return shown(B.to_bytes(rot.extend(channel, count)))
        messages = B.of_bytes(channel.random(32 * count)).reshape(count, 2, 2)
        kos.send_chosen(channel, rot, messages)
        return shown(B.to_bytes(messages))

    def receiver(channel):
        cot = kos.Receiver(channel)
        if kind == "cot":
            return shown(B.to_bytes(cot.extend(channel, count)))
        rot = kos.Random(cot, False)
        if kind == "rot":
            choices, messages = rot.extend(channel, count)
            return {"choices": B.pack(choices).hex(), "messages": shown(B.to_bytes(messages))}
        choices = B.bits_of(channel.random((count + 7) // 8), count)
        return {
            "choices": B.pack(choices).hex(),
            "messages": shown(B.to_bytes(kos.receive_chosen(channel, rot, choices))),
        }

    return run(("ot", "sender", "receiver"), parameters, sender, receiver)


def intersection(security, learns):
    """The first party has a to e, the second d to h; `learns`: the first party."""
    words = {psi.ME: ("result me", "result peer"), psi.BOTH: ("result both", "result both")}[learns]
    parameters = {"base-ot": "mrr21", "channels": "1", "link": "loopback", "key": "bytes", "protocol": "vole"}
    parameters |= {
        "bounds": "none",
        "min-matches": "0",
        "reveal": "rows",
        "result-to-owner": "no",
        "security": security,
    }

    def side(keys, mine):
        def body(channel):
            elements = [psi.element(key) for key in keys]
            found = psi.Run(channel, elements, malicious=security == "malicious", learns=mine).run()
            return None if found is None else [keys[at] for at in found]

        return body

    converse = {psi.ME: psi.PEER, psi.BOTH: psi.BOTH}[learns]
    return run(("psi", *words), parameters, side("abcde", learns), side("defgh", converse))


def evaluation():
    function = circuit.read(CIRCUIT)
    parameters = {
        "asked for": "whole evaluation",
        "base-ot": "mrr21",
        "channels": "1",
        "copies": "auto",
        "function": "a circuit file",
        "input widths": "2,2",
        "link": "loopback",
        "ot": "auto",
        "output widths": "3,1",
        "output-to": "both",
        "protocol": "yao",
        "rows": "1",
        "security": "semi-honest",
        "wiring": function.digest()[:16].hex(),
    }

    def garbler(channel):
        return yao.garble(channel, function, [[1, 1]], True, True)

    def evaluator(channel):
        return yao.evaluate(channel, function, [[0, 1]], True, True)

    return run(("eval", "garbler", "evaluator"), parameters, garbler, evaluator)


def base():
    """A batch of three base OTs of the session zero, the sender being the first party."""
    socks = socket.socketpair()
    sender, receiver = Noted(socks[0], wire.FIRST, []), Noted(socks[1], wire.SECOND, [])
    sending, receiving = base_ot.Sender(sender, 3), base_ot.Receiver(receiver, [0, 1, 1])
    sender.flush()
    receiver.flush()
    pairs = sending.finish(sender)
    taken = receiving.finish(receiver)
    for sock in socks:
        sock.close()
    return {
        "sent by the sender": sending.message.hex(),
        "sent by the receiver": receiving.message.hex(),
        "pairs": [[message.hex() for message in pair] for pair in pairs],
        "choices": [0, 1, 1],
        "taken": [message.hex() for message in taken],
    }


RUNS = {
    "kos, correlated": lambda: transfers("cot", 200),
    "kos, random": lambda: transfers("rot", 200),
    "kos, chosen": lambda: transfers("ot", 20),
    "vole-psi, malicious, both learn": lambda: intersection("malicious", psi.BOTH),
    "vole-psi, semi-honest, the first party learns": lambda: intersection("semi-honest", psi.ME),
    "yao": evaluation,
}


def everything():
    return {
        "seeds": {"first party": SEEDS[1].hex(), "second party": SEEDS[2].hex()},
        "circuit": CIRCUIT.splitlines(),
        "primitives": primitives(),
        "base ot": base(),
        "runs": {name: run() for name, run in RUNS.items()},
    }


if __name__ == "__main__":
    print(json.dumps(everything(), indent=1, ensure_ascii=False))
