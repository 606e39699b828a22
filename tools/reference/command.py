"""Runs the command `tacit` against the reference, and says how it ended. `TACIT` names it where it was built already."""

import json
import os
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import wire

ROOT = Path(__file__).resolve().parent.parent.parent
COMMON = {"base-ot": "mrr21", "channels": "1", "link": "loopback"}
KEYS = {
    "bounds": "none", "case-fold": "true", "key columns": "1", "key labels": "(none)", "key types": "text",
    "min-matches": "0", "nfc": "true", "result-to-owner": "no", "reveal": "rows", "trim": "true",
}
# The versions follow from what the command was built with.
VERSION_OF_KEYS = re.compile(
    r"key v2: 1 columns, nfc true, trim true, case fold true, Unicode of normalisation \d+\.\d+\.\d+, "
    r"of case folding \d+\.\d+\.\d+, of white space \d+\.\d+\.\d+"
)


def command():
    """The command's path; it is an error if there is none."""
    path = os.environ.get("TACIT") or ROOT / "target" / "debug" / "tacit"
    if not Path(path).exists():
        print(f"{path} is missing: `cargo build -p tacit-cli` makes it, or TACIT names it\n0 passed, 1 failed")
        raise SystemExit(1)
    return str(path)


class Peer:
    """A run of the command and this side's channel to it."""

    def __init__(self, words, listens, files=()):
        """`words`: the command's, in which DIR is a folder with `files`. `listens`: whether this side does."""
        self.folder = tempfile.TemporaryDirectory()
        for name, text in dict(files).items():
            self.path(name).write_text(text)
        sock, address = wire.listener()
        ends = ["--connect", address]
        if not listens:
            sock.close()
            ends = ["--listen", address]
        words = [word.replace("DIR", self.folder.name) for word in words.split()]
        self.process = subprocess.Popen(
            [command(), *words, *ends, "--insecure-plaintext", "--json", "--timeout", "60", "--connect-timeout", "60"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.sock, self.ended = sock if listens else None, None
        try:
            self.channel = self.accept() if listens else wire.connect(address, lives=self.lives)
        except OSError:
            self.process.kill()
            raise AssertionError(f"{words}: {self.process.communicate()}") from None

    def lives(self):
        return self.process.poll() is None

    def accept(self):
        """The command's next call."""
        return wire.accept(self.sock, lives=self.lives)

    def path(self, name):
        return Path(self.folder.name) / name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.ended is None:
            self.process.kill()
            self.process.communicate()
        self.channel.sock.close()
        if self.sock:
            self.sock.close()
        self.folder.cleanup()

    def end(self):
        """(exit code, result as a dict or None, what was said on standard error)."""
        self.channel.sock.close()
        out, said = self.process.communicate(timeout=90)
        self.ended = self.process.returncode, json.loads(out) if out.strip() else None, said
        return self.ended


def ot(role, kind, count, *, listens=True, protocol="kos", security="malicious", code=None, more="", files=None):
    """The command as the other side of `role`'s transfers; the job and the parameters to greet it with."""
    theirs = "receiver" if role == "sender" else "sender"
    more += f" --code {code}" if code else ""
    words = f"ot --role {theirs} --count {count} --kind {kind} --protocol {protocol} --security {security}"
    peer = Peer(f"{words} {'' if '--messages' in more else '--out DIR/share.npz'} {more}", listens, files or {})
    terms = {**COMMON, "count": str(count), "kind": kind, "protocol": protocol, "security": security}
    return peer, ("ot", role, theirs), {**terms, "code": code} if code else terms


@cache
def version_of_keys():
    """The parameter of this name, out of a greeting of the command's."""
    with psi_peer("me", ["a"], "malicious", True, "vole", "") as peer:
        found = wire.parse_hello(peer.channel.recv_hello())[-1]["version of keys"]
    assert VERSION_OF_KEYS.fullmatch(found), found
    return found


def psi_peer(word, keys, security, listens, protocol, more):
    """The command as a side that learns what `word` says."""
    words = f"psi --input DIR/in.csv --key k --result {word} --protocol {protocol} --security {security} {more}"
    words += "" if word == "peer" else " --output DIR/out.csv"
    return Peer(words, listens, {"in.csv": "k\n" + "".join(key + "\n" for key in keys)})


def psi(learns, keys, *, security="malicious", listens=True, protocol="vole", more=""):
    """The command with `keys` as the other side of an intersection in which this side learns what `learns` says."""
    word = {"me": "peer", "peer": "me", "both": "both"}[learns]
    terms = {**COMMON, **KEYS, "protocol": protocol, "security": security, "version of keys": version_of_keys()}
    peer = psi_peer(word, keys, security, listens, protocol, more)
    return peer, ("psi", f"result {learns}", f"result {word}"), terms


def link(keys, *, security="malicious", listens=True):
    """The command with `keys` as the other side of a link."""
    words = f"link --input DIR/in.csv --key k --security {security} --output DIR/out.csv"
    peer = Peer(words, listens, {"in.csv": "k\n" + "".join(key + "\n" for key in keys)})
    of_keys = {name: value for name, value in KEYS.items() if name.startswith("key ") or name in ("case-fold", "nfc", "trim")}
    terms = {**COMMON, **of_keys, "security": security, "version of keys": version_of_keys()}
    return peer, ("link", "party", "party"), terms


def rows(peer):
    """The keys that the command wrote, or None if it wrote no file."""
    path = peer.path("out.csv")
    return path.read_text().splitlines()[1:] if path.exists() else None


def yao(role, circuit, name, value, to, *, listens=True):
    """The command as the other side of `role`'s evaluation."""
    theirs = "evaluator" if role == "garbler" else "garbler"
    words = f"eval {name} --role {theirs} --input {value:#x} --output-to {to} --security semi-honest"
    return Peer(words, listens), ("eval", role, theirs), evaluation(circuit, name, to, 1)


def yao_rows(role, circuit, name, values, to, *, listens=True):
    """The same with many rows, out of a table."""
    theirs = "evaluator" if role == "garbler" else "garbler"
    words = f"eval {name} --role {theirs} --batch --input DIR/in.csv --output DIR/out.csv --output-to {to}"
    table = "x\n" + "".join(f"{value}\n" for value in values)
    peer = Peer(f"{words} --security semi-honest", listens, {"in.csv": table})
    return peer, ("eval", role, theirs), evaluation(circuit, name, to, len(values))


def plan(kind, count, protocol="auto"):
    """The job in which both sides of transfers pick a protocol, or a variant of one, by the link."""
    terms = {"channels": "1", "code": "any", "count": str(count), "kind": kind, "link": "loopback", "set": "any"}
    return ("plan", "party", "party"), {**terms, "protocol": protocol, "security": "malicious"}


def evaluation(circuit, name, to, rows):
    """The parameters of an evaluation."""
    return {
        **COMMON, "asked for": "whole evaluation", "copies": "auto", "function": name,
        "input widths": ",".join(map(str, circuit.inputs)), "ot": "auto",
        "output widths": ",".join(map(str, circuit.outputs)), "output-to": to, "protocol": "yao", "rows": str(rows),
        "security": "semi-honest", "wiring": circuit.digest()[:16].hex(),
    }
