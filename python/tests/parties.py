"""Two real processes for each test: this one, and a child that runs one call of the package."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import ports

import tacit

free_address = ports.free_address

ROOT = Path(__file__).resolve().parents[2]
TACIT = os.environ.get("TACIT", str(ROOT / "target/debug/tacit"))


class Child:
    """The other party: `code` runs in a process of its own and says what it found by `tell(...)`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def end(self, timeout: float = 60) -> list[object]:
        out, err = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, f"the other party failed:\n{err}"
        return [json.loads(line) for line in out.splitlines()]


PRELUDE = """
import json, sys
import tacit
def tell(value):
    print(json.dumps(value), flush=True)
"""


@contextlib.contextmanager
def party(code: str, **values: object) -> Iterator[Child]:
    given = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    program = PRELUDE + given + textwrap.dedent(code)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    child = Child(process)
    try:
        yield child
    finally:
        if process.poll() is None:
            process.kill()
        if process.stdout and not process.stdout.closed:
            process.communicate()


POLICY = """
version = 1
listen = "{address}"
identity = "alice.key"
state = "state"
[peers.bob]
key = "bob.pub"
[sources.customers]
input = "customers.csv"
"""


@contextlib.contextmanager
def service(folder: Path, policy: str) -> Iterator[tuple[tacit.Session, str]]:
    """Alice's service of `customers.csv` in `folder`, by the rest of a policy: a session of Bob's with it, its address."""
    for name in ("alice", "bob"):
        tacit.keygen(folder / f"{name}.key")
    address = free_address()
    (folder / "policy.toml").write_text(POLICY.format(address=address) + policy)
    command = [TACIT, "--json", "serve", "--policy", "policy.toml"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "started" in process.stdout.readline()
        yield tacit.Session(connect=address, identity=folder / "bob.key", peer=folder / "alice.pub"), address
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
