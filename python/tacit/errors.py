"""What can go wrong, and who can fix it."""

from __future__ import annotations

__all__ = [
    "Cheated",
    "Declined",
    "Error",
    "InputError",
    "Mismatch",
    "OutOfRange",
    "PeerError",
    "SecretBranch",
    "UsageError",
]


class Error(Exception):
    """Anything that went wrong in a job. ``blame`` says who can fix it."""

    blame: str = "other"


class UsageError(Error, ValueError):
    """The caller asked for something impossible."""

    blame = "usage"


class InputError(Error, ValueError):
    """The data that the caller gave, or a local file, is not usable."""

    blame = "input"


class PeerError(Error, ConnectionError):
    """The peer or the link failed or deviated."""

    blame = "peer"


class Declined(Error):
    """The terms that a service offered were not taken: nothing was told."""

    blame = "usage"


class Cheated(PeerError):
    """A check of what the peer did has failed: it deviated from the protocol, or the link damages data."""


class Mismatch(PeerError):
    """The two sides were started with different settings.

    ``differences`` holds a tuple ``(setting, ours, theirs)`` for each; a value is ``None`` where a side has no
    such setting.
    """

    differences: list[tuple[str, str | None, str | None]]

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.differences = []


class OutOfRange(Error, ArithmeticError):
    """A number of a function does not fit its type, or was divided by zero: nothing else is learned."""

    blame = "input"


class SecretBranch(Error, TypeError):
    """A function branches on a secret value; its line is named."""

    blame = "usage"
