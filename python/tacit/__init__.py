"""Two parties compute on data that neither may see.

>>> import tacit
>>> tacit.__version__.count(".")
2

The jobs: :func:`intersect` (which rows do we share), :func:`link` (identifiers that match where keys do, to join later),
:func:`query` (counts and sums of joined tables, in SQL),
:func:`evaluate` (a function of both sides' numbers),
:func:`request` and :func:`ask` (an intersection with a service, or an answer in SQL, by its terms), :func:`ot`, :func:`vole` and :func:`triples`
(correlations for protocols of your own). Both sides call the same job with the same settings, one with ``listen="0.0.0.0:7700"``, the other with
``connect="host:7700"``; :func:`keygen` makes the keys by which they know each other. :class:`Session` keeps the settings for several jobs.
"""

from __future__ import annotations

from . import _number, _tacit
from . import nisc as nisc
from ._jobs import (
    Check,
    Evaluation,
    File,
    Granted,
    Identifier,
    Intersection,
    KeyPair,
    Offer,
    Progress,
    Reason,
    Session,
    Settings,
    Transfers,
    check,
    evaluate,
    fingerprint,
    functions,
    intersect,
    keygen,
    ot,
    request,
    triples,
    vole,
)
from ._link import Linked, link
from ._number import (
    Array,
    Function,
    Number,
    Type,
    function,
    i8,
    i16,
    i32,
    i64,
    int_,
    sort,
    u8,
    u16,
    u32,
    u64,
    uint,
    where,
)
from ._query import Answer, Answered, ask, query
from .errors import (
    Cheated,
    Declined,
    Error,
    InputError,
    Mismatch,
    OutOfRange,
    PeerError,
    SecretBranch,
    UsageError,
)

__version__: str = _tacit.__version__

# Called as what they are like; `from tacit import *` leaves Python's own in place.
bool = _number.bool_
max = _number.max_
min = _number.min_
sum = _number.sum_

__all__ = [
    "Answer",
    "Answered",
    "Array",
    "Cheated",
    "Check",
    "Declined",
    "Error",
    "Evaluation",
    "File",
    "Function",
    "Granted",
    "Identifier",
    "InputError",
    "Intersection",
    "KeyPair",
    "Linked",
    "Mismatch",
    "Number",
    "Offer",
    "OutOfRange",
    "PeerError",
    "Progress",
    "Reason",
    "SecretBranch",
    "Session",
    "Settings",
    "Transfers",
    "Type",
    "UsageError",
    "ask",
    "check",
    "evaluate",
    "fingerprint",
    "function",
    "functions",
    "i8",
    "i16",
    "i32",
    "i64",
    "int_",
    "intersect",
    "keygen",
    "link",
    "ot",
    "query",
    "request",
    "sort",
    "triples",
    "u8",
    "u16",
    "u32",
    "u64",
    "uint",
    "vole",
    "where",
]
