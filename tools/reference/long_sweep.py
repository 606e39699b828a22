#!/usr/bin/env python3
"""Every message of the reference changed by one bit, in every protocol and role, against the command.

    python3 tools/reference/long_sweep.py [SEED [RUN...]]

A run must end with exit code 4 and no result, or with a right one: transfers whose correlation holds, matches that
are among the true ones. Ends with `N passed, N failed`.
"""

import random
import sys
from concurrent.futures import ProcessPoolExecutor

import with_numpy

with_numpy.ensure()

import numpy as np  # noqa: E402

import blocks as B  # noqa: E402
import command  # noqa: E402
import honest  # noqa: E402
import kos  # noqa: E402
import psi  # noqa: E402
import wire  # noqa: E402
import yao  # noqa: E402

COUNT = 300
MINE, THEIRS = honest.keys(0, 20), honest.keys(10, 30)


def transfers(role, kind, listens, size=None):
    """Starts the command, and gives the body of this side and the check of both sides' results."""
    peer, job, terms = command.ot(role, kind, COUNT, listens=listens, **honest.way(size))

    def body(channel):
        cot = honest.party(channel, role, size)
        sends = role == "sender"
        result = cot.extend(channel, COUNT) if kind == "cot" else kos.Random(cot, sends).extend(channel, COUNT)
        return cot, result

    def right(found, _):
        cot, mine = found
        with np.load(peer.path("share.npz")) as share:
            if kind == "cot" and role == "sender":
                return holds(B.of_int(cot.delta), mine, share["w"])
            if kind == "cot":
                return holds(share["delta"], share["v"], mine)
            if role == "sender":
                return (mine[np.arange(COUNT), share["u"]] == share["m"]).all()
            pairs = np.stack([share["m0"], share["m1"]], 1)
            return (pairs[np.arange(COUNT), mine[0]] == mine[1]).all()

    return peer, job, terms, body, right


def holds(delta, v, w):
    return (w == v ^ B.masked(B.lsb(w), np.broadcast_to(delta, v.shape))).all()


def intersection(learns, security, listens, protocol="vole"):
    word = honest.WORDS[learns]
    peer, job, terms = command.psi(word, THEIRS, security=security, listens=listens, protocol=protocol)

    def body(channel):
        elements = [psi.element(key) for key in MINE]
        malicious, auto = security == "malicious", protocol == "auto"
        return psi.Run(channel, elements, malicious=malicious, learns=learns, auto=auto).run()

    def right(_, __):
        rows = command.rows(peer)
        return set(rows or []) <= set(MINE) & set(THEIRS)

    return peer, job, terms, body, right


def evaluation(role, to, listens):
    """An evaluator that changes its corrections by a bit has another input by that bit."""
    function = honest.exported("add8")
    peer, job, terms = command.yao(role, function, "add8", 100, to, listens=listens)

    def body(channel):
        run = yao.garble if role == "garbler" else yao.evaluate
        return run(channel, function, [honest.bits(7, 8)], to != "evaluator", to != "garbler")

    def right(_, result):
        changed = (int(result["outputs"][0], 16) - 100) % 256 ^ 7
        return changed & (changed - 1) == 0

    return peer, job, terms, body, right


RUNS = {
    "kos, random, sending": lambda listens: transfers("sender", "rot", listens),
    "kos, correlated, receiving": lambda listens: transfers("receiver", "cot", listens),
    "kos, random, receiving": lambda listens: transfers("receiver", "rot", listens),
    "softspoken, random, sending": lambda listens: transfers("sender", "rot", listens, 8),
    "softspoken, correlated, receiving": lambda listens: transfers("receiver", "cot", listens, 4),
    "softspoken, random, receiving": lambda listens: transfers("receiver", "rot", listens, 2),
    "vole-psi, sending": lambda listens: intersection(psi.PEER, "malicious", listens),
    "vole-psi, receiving": lambda listens: intersection(psi.ME, "malicious", listens),
    "vole-psi, both learn": lambda listens: intersection(psi.BOTH, "malicious", listens),
    "vole-psi, nobody named it": lambda listens: intersection(psi.PEER, "malicious", listens, "auto"),
    "yao, evaluating for the garbler": lambda listens: evaluation("evaluator", "garbler", listens),
}


def one(name, target, seed):
    """A run in which message `target` has a bit flipped: (messages, what went wrong, whether it was refused)."""
    choose = random.Random(f"{name} {target} {seed}")
    peer, job, terms, body, right = RUNS[name](choose.random() < 0.5)
    count = 0

    def tamper(at, data):
        nonlocal count
        count = at + 1
        if at != target or not data:
            return data
        data, bit = bytearray(data), choose.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        return bytes(data)

    with peer:
        found, ended = None, False
        try:
            wire.greet(peer.channel, job, terms)
            peer.channel.tamper = tamper
            found = body(peer.channel)
            ended = True
            wire.finish(peer.channel)
        except (wire.Refused, wire.Ended, TimeoutError):
            # Another number of keys than was meant leaves both sides waiting.
            pass
        code, result, said = peer.end()
        nothing = result is None and command.rows(peer) is None and not peer.path("share.npz").exists()
        if code == 4 and nothing and target is not None:
            return count, "", True
        # Where this side gave up on its own, it has nothing to compare with.
        if code == 0 and (ended or "psi" in job) and right(found, result):
            return count, "", False
        return count, f"exit code {code}, {result}, {said}", False


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    command.command()
    passed = failed = 0
    with ProcessPoolExecutor(2) as pool:
        for name in sys.argv[2:] or RUNS:
            messages, wrong, _ = one(name, None, seed)
            outcomes = list(pool.map(one, [name] * messages, range(messages), [seed] * messages))
            faults = [wrong] * bool(wrong) + [
                f"message {at}: {what}" for at, (_, what, _) in enumerate(outcomes) if what
            ]
            refused = sum(outcome[2] for outcome in outcomes)
            print(
                f"{name}: {messages} messages, {refused} refused, {messages - refused - len(faults)} harmless",
                flush=True,
            )
            print("".join(f"FAILED {fault}\n" for fault in faults), end="", flush=True)
            passed, failed = passed + messages + 1 - len(faults), failed + len(faults)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or not passed)


if __name__ == "__main__":
    sys.exit(main())
