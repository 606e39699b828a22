"""Addresses of this machine that nobody listens at."""

from __future__ import annotations

import contextlib
import socket


def free_address() -> str:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
