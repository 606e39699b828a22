"""Transfers and functions whose messages are bytes, checked by Python's own numbers and NumPy."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path
from typing import Any

import numpy
import pytest

import tacit
from tacit import nisc


def exchange(folder: Path, choices: Any, messages: tuple[Any, Any]) -> Any:
    public = nisc.keygen(len(choices), folder / "receiver.key")
    answer = nisc.answer(public, folder / "sender.key")
    question = nisc.ask(folder / "receiver.key", choices)
    reply = nisc.reply(folder / "sender.key", public, question, messages)
    return nisc.open(folder / "receiver.key", choices, answer, question, reply)


def test_chosen_messages_of_every_form(tmp_path: Path) -> None:
    choices = [1, 0, 1, 1, 0]
    zero, one = ["a", "", "ccc", "d", "e"], ["A", "B", "C", "Dé", ""]
    wanted = [pair[bit] for pair, bit in zip(zip(zero, one, strict=True), choices, strict=True)]
    for name, given in {
        "text": (zero, one),
        "bytes": ([text.encode() for text in zero], [text.encode() for text in one]),
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        got = list(exchange(folder, choices, given))
        assert [one if isinstance(one, str) else one.decode() for one in got] == wanted
    generator = numpy.random.default_rng(35)
    for width, kind in ((2, numpy.uint64), (7, numpy.uint8)):
        m0, m1 = (generator.integers(0, 200, size=(5, width)).astype(kind) for _ in range(2))
        folder = tmp_path / kind.__name__
        folder.mkdir()
        got = exchange(folder, choices, (m0, m1))
        assert (got == numpy.where(numpy.array(choices)[:, None] == 1, m1, m0)).all() and got.dtype == kind


def test_a_key_serves_once_and_what_does_not_fit_is_named(tmp_path: Path) -> None:
    key, sender = tmp_path / "receiver.key", tmp_path / "sender.key"
    public = nisc.keygen(4, key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with pytest.raises(tacit.InputError, match="exists already"):
        nisc.keygen(4, key)
    answer = nisc.answer(public, sender)
    with pytest.raises(tacit.UsageError, match="the key is for 4"):
        nisc.ask(key, [1])
    question = nisc.ask(key, [1, 0, 0, 1])
    with pytest.raises(tacit.InputError, match="make a new key"):
        nisc.ask(key, [1, 1, 1, 1])
    with pytest.raises(tacit.PeerError, match=r"question: this is .*public key"):
        nisc.reply(sender, public, public, (["a"] * 4, ["b"] * 4))
    with pytest.raises(tacit.UsageError, match="the key is for 4"):
        nisc.reply(sender, public, question, (["a"], ["b"]))
    reply = nisc.reply(sender, public, question, (["a"] * 4, ["b"] * 4))
    with pytest.raises(tacit.Error):
        nisc.reply(sender, public, question, (["c"] * 4, ["d"] * 4))
    with pytest.raises(tacit.UsageError, match="the question asks for others"):
        nisc.open(key, [0, 0, 0, 1], answer, question, reply)
    changed = bytearray(reply)
    changed[-1] ^= 1
    with pytest.raises(tacit.PeerError, match="reply: "):
        nisc.open(key, [1, 0, 0, 1], answer, question, bytes(changed))
    assert list(nisc.open(key, [1, 0, 0, 1], answer, question, reply)) == ["b", "a", "a", "b"]
    # A changed answer spends the key, on the disk.
    changed = bytearray(answer)
    changed[-40] ^= 1
    with pytest.raises(tacit.Cheated):
        nisc.open(key, [1, 0, 0, 1], bytes(changed), question, reply)
    with pytest.raises(tacit.Error):
        nisc.open(key, [1, 0, 0, 1], answer, question, reply)


def test_signed_messages_are_their_authors(tmp_path: Path) -> None:
    alice, bob = (tacit.keygen(tmp_path / name) for name in ("alice.key", "bob.key"))
    key = tmp_path / "asked.key"
    question = nisc.eval_ask("max32", 10, key=key, identity=bob.private)
    with pytest.raises(tacit.Error):
        nisc.eval_reply("max32", 7, question=question, identity=bob.private, peer=alice.public)
    reply = nisc.eval_reply("max32", 7, question=question, identity=alice.private, peer=bob.public)
    with pytest.raises(tacit.PeerError, match="reply: "):
        nisc.eval_open("max32", key, reply, peer=bob.public)
    with pytest.raises(tacit.PeerError, match="reply: "):
        nisc.eval_open("max32", key, reply[106:])
    assert nisc.eval_open("max32", key, reply, peer=alice.public) == 10


def test_functions_programs_and_rows(tmp_path: Path) -> None:
    program = tmp_path / "f.garble.rs"
    program.write_text("pub fn main(price: i32, limit: i32) -> i32 {\n    limit - price\n}\n")
    question = nisc.eval_ask(str(program), -5, key=tmp_path / "1.key")
    assert (
        nisc.eval_open(str(program), tmp_path / "1.key", nisc.eval_reply(str(program), 70, question=question))
        == -75
    )
    question = nisc.eval_ask("add32", key=tmp_path / "2.key", rows=[1, 2, 3])
    for reply in ([4, 5, 6], [7, 8, 9]):
        got = nisc.eval_open(
            "add32", tmp_path / "2.key", nisc.eval_reply("add32", question=question, rows=reply)
        )
        assert got == [a + b for a, b in zip([1, 2, 3], reply, strict=True)]
    with pytest.raises(tacit.UsageError, match="the question asks for 3"):
        nisc.eval_reply("add32", 1, question=question)
    with pytest.raises(tacit.PeerError, match="another function"):
        nisc.eval_reply("sub32", question=question, rows=[1, 2, 3])
    with pytest.raises(tacit.UsageError, match="inputs: give"):
        nisc.eval_ask("add32", 1, key=tmp_path / "3.key", rows=[1])
    with pytest.raises(tacit.UsageError, match="both sides online"):
        nisc.eval_ask("modexp1024", 1, key=tmp_path / "3.key")
    assert not (tmp_path / "3.key").exists()


def gf128(a: int, b: int) -> int:
    """a·b of polynomials modulo x^128 + x^7 + x^2 + x + 1."""
    product = 0
    for bit in range(128):
        product ^= (b >> bit & 1) * (a << bit)
    for bit in reversed(range(128, 256)):
        product ^= (product >> bit & 1) * ((1 << 128 | 0x87) << (bit - 128))
    return product


def test_reverse_vole_is_v_plus_u_times_delta(tmp_path: Path) -> None:
    for field, bits, prime in (
        ("gf2", 1, 0),
        ("gf128", 128, 0),
        ("p61", 61, 2**61 - 1),
        ("p128", 128, 2**128 - 159),
    ):
        name, key, wide = f"reverse-vole-{field}", tmp_path / field, 61 if field == "p61" else 128
        u = [secrets.randbits(bits) for _ in range(20)]
        question = nisc.eval_ask(name, key=key, rows=u)
        for _ in range(2):
            delta, v = secrets.randbits(wide), [secrets.randbits(wide) for _ in u]
            reply = nisc.eval_reply(name, question=question, rows=[[delta, one] for one in v])
            for u_i, v_i, w in zip(u, v, nisc.eval_open(name, key, reply), strict=True):
                assert w == ((v_i + u_i * delta) % prime if prime else v_i ^ gf128(delta, u_i))
    u = numpy.random.default_rng(1).integers(0, 2**61 - 1, size=64, dtype=numpy.uint64)
    question = nisc.eval_ask("reverse-vole-p61", key=tmp_path / "array", rows=u.tolist())
    reply = nisc.eval_reply("reverse-vole-p61", question=question, rows=[[3, 5]] * 64)
    w = numpy.array(nisc.eval_open("reverse-vole-p61", tmp_path / "array", reply), dtype=object)
    assert (w == (u.astype(object) * 3 + 5) % (2**61 - 1)).all()
