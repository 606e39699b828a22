#!/usr/bin/env python3
"""Draws the book's pictures of messages between two parties: pictures.py [FOLDER], docs/pictures unless given.

A picture is its two parties and its steps from top to bottom: `→` and `←` are messages, `↔` is said by both,
`left`, `right` and `both` are what a party does by itself.
"""

import sys
import textwrap
from html import escape
from pathlib import Path

PICTURES = {
    "channel": ("listening side", "connecting side", [
        ("↔", "TLS 1.3: key exchange by X25519 and ML-KEM-768"),
        ("↔", "proof of the pinned key, each to the other"),
        ("↔", "greeting: release, role, job and every parameter"),
        ("both", "compare; a difference ends the run, and its name is said"),
        ("both", "session id: a hash of both greetings and TLS's secret"),
        ("↔", "the protocol's frames, counted, within deadlines"),
    ]),
    "base-ot": ("sender", "receiver", [
        ("left", "draws a secret number a"),
        ("→", "a·G, one group element for the whole batch"),
        ("right", "draws b for each OT, and hides b·G by its choice bit"),
        ("←", "for each OT one message, in which both branches have an element"),
        ("left", "multiplies both elements by a; cannot tell of which b is known"),
        ("right", "multiplies a·G by b"),
        ("both", "hash what came out, with session, index and branch: m₀ and m₁ here, one of them there"),
    ]),
    "ot-extension": ("sender (has Δ)", "receiver (has choices)", [
        ("↔", "128 base OTs, roles turned round: bit i of Δ picks a seed"),
        ("right", "stretches both seeds of each column"),
        ("←", "u: for each column, both stretched seeds and the choices XORed"),
        ("→", "random weights (or a hash of u gives them)"),
        ("←", "check: weighted sums of choices and rows"),
        ("left", "compares with its own rows; a difference ends the run"),
        ("both", "turn columns to rows: w = v ⊕ c·Δ; hash rows for random OTs"),
    ]),
    "silent-ot": ("sender (has Δ)", "receiver (has noise)", [
        ("↔", "a few hundred OTs by base OT and KOS"),
        ("left", "grows trees of pseudorandom values from seeds"),
        ("←", "bits that hide the places of its secret leaves"),
        ("→", "for each tree, one correction a level"),
        ("right", "grows the same trees, but for one secret leaf each"),
        ("↔", "check: random sums of all leaves agree"),
        ("both", "multiply the leaves by a public matrix"),
        ("both", "millions of OTs: w = v ⊕ c·Δ, with nothing more sent"),
    ]),
    "garbling": ("garbler", "evaluator", [
        ("left", "two random labels a wire; encrypts each AND gate's outputs"),
        ("→", "two ciphertexts an AND gate; XOR gates cost nothing"),
        ("→", "labels of its own input bits"),
        ("↔", "oblivious transfer: the evaluator's input picks labels"),
        ("right", "opens one entry of each gate, from inputs to outputs"),
        ("→", "which output label means 0 (if the evaluator learns it)"),
        ("←", "output labels (if the garbler learns it)"),
    ]),
    "cut-and-choose": ("P1, the garbler", "P2, the evaluator", [
        ("↔", "base OTs"),
        ("←", "OTs hide which 24 of 44 copies it will evaluate, and its input"),
        ("left", "garbles 44 copies of the circuit, each from a seed of its own"),
        ("→", "OTs of its own bind it to one input in all copies"),
        ("→", "commitments to all copies' tables, then the tables"),
        ("←", "opens the OTs that bind P1's input"),
        ("→", "seeds of 20 copies and input labels of 24: P1 cannot see which"),
        ("right", "garbles 20 copies by itself and compares; evaluates 24"),
        ("↔", "if evaluated copies disagree, this gives P1's input away"),
        ("both", "the same messages whatever was found; then the right output, or an error"),
    ]),
    "authenticated": ("A, the garbler", "B, the evaluator", [
        ("↔", "base OTs; silent OT both ways: random bits of each party under the other's MACs"),
        ("↔", "products of such bits, checked, and put together in shuffled buckets"),
        ("both", "up to here nothing depends on the function"),
        ("↔", "differences of products and masks: every gate gets a product of its masks"),
        ("both", "up to here nothing depends on the inputs"),
        ("↔", "inputs under their masks"),
        ("→", "labels of the inputs; one circuit, a table of 32 bytes an AND gate"),
        ("right", "evaluates; sees masked values alone"),
        ("←", "masked values with their labels, which A checks"),
        ("→", "MACs of every gate's mask, which B checks against what it saw"),
        ("↔", "shares of the outputs' masks with MACs, to who learns them"),
    ]),
    "vole-psi": ("receiver of the result", "sender", [
        ("↔", "how many keys each has; then the hash's salt"),
        ("left", "hashes keys, solves a store P with P(key) = hash"),
        ("↔", "silent VOLE: a pseudorandom vector w = Δ·u + v"),
        ("→", "P masked by u"),
        ("right", "computes a tag of each of its keys with Δ"),
        ("←", "the tags, sorted"),
        ("left", "computes tags of its own keys from w, and compares"),
    ]),
    "paxos": ("receiver of the result", "sender", [
        ("↔", "how many keys each has; OTs by KOS and OOS"),
        ("left", "hashes keys, solves a store D with D(key) = hash"),
        ("→", "D, a row of choices for each slot, encoded"),
        ("→", "OOS' check that every row is a word of the code"),
        ("right", "decodes each of its keys: a tag that needs its secret"),
        ("←", "the tags, sorted"),
        ("left", "computes tags of its own keys, and compares"),
    ]),
    "tags": ("publisher (large set)", "client (small set)", [
        ("left", "draws a key k; the tag of an element x is a hash of k·H(x)"),
        ("→", "once, as a file: all tags, sorted and packed"),
        ("right", "blinds each of its elements: r·H(y)"),
        ("←", "blinded elements, 32 bytes each"),
        ("left", "counts them, on the disk, before it answers"),
        ("→", "k·r·H(y), and a proof that k is the published key's"),
        ("right", "takes r off, hashes, looks the tag up in the file"),
    ]),
    "nisc": ("receiver", "sender", [
        ("left", "nisc keygen"),
        ("→", "a public key, as a file, to any number of senders"),
        ("right", "nisc answer"),
        ("←", "an answer, as a file"),
        ("left", "nisc expand: checks it; the first bad one spends the key"),
        ("both", "a million OTs, without ever being on line together"),
    ]),
}

WIDTH, LEFT, RIGHT = 560, 92, 468
STYLE = """
text { font: 13px "DejaVu Sans", Verdana, sans-serif; fill: #1f2933 }
.party { font-weight: bold; fill: #fff }
.head { fill: #37546d } .line { stroke: #9fb3c8; stroke-dasharray: 4 4 }
.note { fill: #eef4f8; stroke: #9fb3c8 } .arrow { stroke: #00796b; stroke-width: 2; fill: none }
.tip { fill: #00796b }"""


def text(x, y, lines, kind=""):
    """Lines of text, centred at x, the first at y."""
    attribute = f' class="{kind}"' if kind else ""
    spans = "".join(f'<tspan x="{x}" dy="{0 if at == 0 else 16}">{escape(line)}</tspan>' for at, line in enumerate(lines))
    return f'<text{attribute} x="{x}" y="{y}" text-anchor="middle">{spans}</text>'


def head(x, name):
    width = 174
    if len(name) > 22:
        raise ValueError(f"{name} does not fit into the box of a party")
    return f'<rect class="head" x="{x - width / 2:.0f}" y="8" width="{width}" height="30" rx="4"/>' + text(x, 28, [name], "party")


def message(y, way, words):
    lines = textwrap.wrap(words, 56)
    found = [text(WIDTH // 2, y, lines)]
    y += 16 * (len(lines) - 1) + 9
    found.append(f'<path class="arrow" d="M{LEFT + 6} {y}H{RIGHT - 6}"/>')
    if way in "→↔":
        found.append(f'<path class="tip" d="M{RIGHT - 2} {y}l-11 -5v10z"/>')
    if way in "←↔":
        found.append(f'<path class="tip" d="M{LEFT + 2} {y}l11 -5v10z"/>')
    return found, y + 27


def note(y, side, words):
    lines = textwrap.wrap(words, 66 if side == "both" else 33)
    width = 500 if side == "both" else 250
    x = {"left": 8 + width / 2, "right": WIDTH - 8 - width / 2, "both": WIDTH / 2}[side]
    height = 16 * len(lines) + 12
    top = y - 17
    box = f'<rect class="note" x="{x - width / 2:.0f}" y="{top}" width="{width}" height="{height}" rx="4"/>'
    return [box, text(f"{x:.0f}", top + 20, lines)], top + height + 27


def draw(left, right, steps):
    """The picture as SVG."""
    body, y = [], 68
    for way, words in steps:
        more, y = message(y, way, words) if way in "→←↔" else note(y, way, words)
        body += more
    height = y - 10
    lines = [f'<path class="line" d="M{x} 38V{height - 8}"/>' for x in (LEFT, RIGHT)]
    inside = "\n".join([*lines, head(LEFT, left), head(RIGHT, right), *body])
    title = escape(f"Messages between {left} and {right}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f"<title>{title}</title>\n<style>{STYLE}\n</style>\n"
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n{inside}\n</svg>\n'
    )


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "docs/pictures"
    for name, picture in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw(*picture))


if __name__ == "__main__":
    main()
