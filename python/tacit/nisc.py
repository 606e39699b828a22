"""Transfers and functions whose messages are bytes: no connection, any number of senders to one receiver.

The receiver publishes one message, each sender answers with one; how they travel is up to you. Secret keys are files,
which remember what they have served for: never put an old copy back. With `identity`, a private key file of
:func:`tacit.keygen`, a message carries its author's signature; with `peer`, the other side's public key file, no
other's is taken.

>>> import tacit.nisc, tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> question = tacit.nisc.eval_ask("millionaires", 5_000_000, key=folder / "asked.key")
>>> reply = tacit.nisc.eval_reply("millionaires", 4_000_000, question=question)
>>> tacit.nisc.eval_open("millionaires", folder / "asked.key", reply)
0
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from . import _tacit
from ._jobs import _is_arrow, _left_open, _own_choices, _own_messages, _text, _value
from .errors import OutOfRange, UsageError

__all__ = ["answer", "ask", "eval_ask", "eval_open", "eval_reply", "keygen", "open", "reply"]

_Path = str | PathLike[str]


def _path(path: _Path | None) -> Path | None:
    return None if path is None else Path(path)


def keygen(
    n: int,
    key: _Path,
    *,
    security: Literal["malicious", "semi-honest"] = "malicious",
    identity: _Path | None = None,
) -> bytes:
    """The receiver's public key for `n` transfers (at most 2^24) with any number of senders.

    The secret key goes to the new file `key`, which its owner alone can read. `security` says against which senders
    the receiver is safe. One key takes one question.
    """
    return _tacit.nisc_keygen(n, Path(key), security=security, identity=_path(identity))


def answer(public: bytes, key: _Path, *, identity: _Path | None = None, peer: _Path | None = None) -> bytes:
    """A sender's answer to the receiver's `public` key. Its own secret key goes to the new file `key`."""
    return _tacit.nisc_answer(
        _message("public", public), Path(key), identity=_path(identity), peer=_path(peer)
    )


def ask(key: _Path, choices: Any, *, identity: _Path | None = None) -> bytes:
    """The receiver's question for `choices`, a bit for each transfer of the key. The key's file is marked first."""
    return _tacit.nisc_ask(Path(key), _own_choices(choices), identity=_path(identity))


def reply(
    key: _Path,
    public: bytes,
    question: bytes,
    messages: tuple[Any, Any],
    *,
    identity: _Path | None = None,
    peer: _Path | None = None,
) -> bytes:
    """The sender's reply to a `question`: of each pair of `messages` the receiver gets one, of its choice.

    `messages` are as of :func:`tacit.ot`: a pair of two lists of ``str`` or of ``bytes``, or of two arrays,
    ``uint64[n, 2]`` or ``uint8[n, bytes]``. The receiver learns the length of the longest. The key serves for one
    reply, and its file is marked before this returns: if the reply is lost, both sides begin anew.
    """
    _, form, width, data = _own_messages(*messages)
    return _tacit.nisc_reply(
        Path(key),
        _message("public", public),
        _message("question", question),
        (form, width, data),
        identity=_path(identity),
        peer=_path(peer),
    )


def open(
    key: _Path, choices: Any, answer: bytes, question: bytes, reply: bytes, *, peer: _Path | None = None
) -> Any:
    """The messages that the receiver chose, in the form in which the sender gave them: a list or an array.

    Raises :class:`Cheated` for an answer that fails its check, which wipes the key's file: whether it passed tells
    its sender of the key.
    """
    messages = [_message(*one) for one in (("answer", answer), ("question", question), ("reply", reply))]
    return _tacit.nisc_open(Path(key), _own_choices(choices), *messages, peer=_path(peer))


def _message(name: str, value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise UsageError(f"{name}: give the message as bytes, such as pathlib.Path(file).read_bytes()")
    return bytes(value)


def _function(function: Any) -> str:
    if not isinstance(function, str | PathLike):
        raise UsageError(
            "function: give a name or a file; functions made by tacit.function need both sides on line"
        )
    return str(function)


def _inputs(values: Any) -> str:
    if isinstance(values, Mapping):
        raise UsageError(
            "inputs: give numbers or texts in the order of the function's inputs, not by their names"
        )
    # What NumPy has, as Python's numbers.
    return _text(values.tolist() if hasattr(values, "tolist") else values)


def _rows(inputs: Any, rows: Any) -> Any:
    if (inputs is None) == (rows is None):
        raise UsageError("inputs: give your inputs of one evaluation, or rows= of several")
    if rows is None:
        return [_inputs(inputs)]
    return rows if _is_arrow(rows) else [_inputs(row) for row in rows]


def eval_ask(
    function: str,
    inputs: Any = None,
    *,
    key: _Path,
    rows: Any = None,
    entry: str | None = None,
    garbler_inputs: int | None = None,
    constants: Mapping[str, int | bool | str] | None = None,
    bits: Literal["usual", "reversed"] = "usual",
    identity: _Path | None = None,
) -> bytes:
    """The receiver's question on a function of its `inputs` and of each sender's.

    `function` is a name of :func:`functions`, a circuit's file or a program (``"….garble.rs"``), of which the receiver
    is the evaluator; or, without a circuit, ``"andN"``, ``"inner-productN"`` or ``"reverse-vole-FIELD"``. `inputs`,
    `rows` and what a program leaves open are as of :func:`evaluate`. The secret key goes to the new file `key`.

    A sender that cheats can make the receiver compute another function; one that hears that its reply was refused may
    have learned a bit of the inputs.
    """
    left = _left_open(entry, garbler_inputs, constants, bits)
    return _tacit.nisc_eval_ask(
        _function(function), _rows(inputs, rows), Path(key), left, identity=_path(identity)
    )


def eval_reply(
    function: str,
    inputs: Any = None,
    *,
    question: bytes,
    rows: Any = None,
    entry: str | None = None,
    garbler_inputs: int | None = None,
    constants: Mapping[str, int | bool | str] | None = None,
    bits: Literal["usual", "reversed"] = "usual",
    identity: _Path | None = None,
    peer: _Path | None = None,
) -> bytes:
    """A sender's reply to a `question`, on its own `inputs`: the receiver alone learns the result."""
    left = _left_open(entry, garbler_inputs, constants, bits)
    name, given, message = _function(function), _rows(inputs, rows), _message("question", question)
    return _tacit.nisc_eval_reply(name, given, message, left, identity=_path(identity), peer=_path(peer))


def eval_open(
    function: str,
    key: _Path,
    reply: bytes,
    *,
    signed: bool = False,
    entry: str | None = None,
    garbler_inputs: int | None = None,
    constants: Mapping[str, int | bool | str] | None = None,
    bits: Literal["usual", "reversed"] = "usual",
    peer: _Path | None = None,
) -> Any:
    """The result by a sender's `reply`: as :func:`evaluate` gives it, of a question on one row; else a list of them.

    Raises :class:`Cheated` for a reply that fails a check, which wipes the key's file. Put a new question to the other
    senders alone. In a list ``None`` stands where a program went wrong; of one row that raises :class:`OutOfRange`.
    """
    left = _left_open(entry, garbler_inputs, constants, bits)
    raw = _tacit.nisc_eval_open(
        _function(function), Path(key), _message("reply", reply), left, signed=signed, peer=_path(peer)
    )
    if "literals" in raw:
        literals = [literal for (literal,) in raw["literals"]]
        if len(literals) == 1 and literals[0].startswith("fault: "):
            raise OutOfRange(f"{function}: {literals[0].removeprefix('fault: ')}")
        values: list[Any] = [None if one.startswith("fault: ") else _value(one) for one in literals]
    else:
        lists: list[Any] = [
            [[int(part) for part in one.split(",")] if "," in one else int(one) for one in row]
            for row in raw["outputs"]
        ]
        values = [row[0] if len(row) == 1 else row for row in lists]
    return values[0] if len(values) == 1 else values
