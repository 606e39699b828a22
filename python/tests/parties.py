"""Two real processes for each test: this one, and a child that runs one call of the package."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator


def free_address() -> str:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


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
