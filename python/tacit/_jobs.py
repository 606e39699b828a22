"""The jobs that two parties do together."""

from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from . import _adbc, _tacit
from ._number import Function
from .errors import Declined, Error, OutOfRange, UsageError

if TYPE_CHECKING:
    import numpy
    import pandas  # type: ignore[import-untyped, unused-ignore]
    import polars
    from numpy.typing import NDArray

    from ._link import Linked
    from ._query import Answer, Answered, Use

_log = logging.getLogger("tacit")

Path: TypeAlias = "str | os.PathLike[str]"


#: The least and the most that one key adds to a number, as the column's numbers are written.
Bounds: TypeAlias = "tuple[int | str | Decimal, int | str | Decimal]"

#: The columns of a key: one, or several in an order, or by name with their types.
On: TypeAlias = "str | Sequence[str] | Mapping[str, str]"


def _written(bounds: Bounds | None) -> str | None:
    """Bounds as the command line writes them."""
    if bounds is None:
        return None
    least, most = (f"{one:f}" if isinstance(one, Decimal) else str(one) for one in bounds)
    return f"{least}..{most}"


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    #: What it does at the moment, such as ``encoding``.
    phase: str
    #: How much of the phase is done, in `unit`.
    done: int
    #: How much there is; 0 where that is not known.
    total: int
    #: What is counted, such as ``keys``.
    unit: str
    #: The share of the whole job, from 0 to 0.99: a job that still runs is not done.
    fraction: float
    #: Bytes that have passed in both directions.
    bytes: int


#: Who is told of a job's progress: a function, or ``True`` for a bar by tqdm where that is installed.
Listener: TypeAlias = Callable[[Progress], None] | bool | None


class _Bar:
    """A bar by tqdm, in terminals and in notebooks."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            self._bar = None
            return
        self._bar = tqdm(
            total=100, unit="%", bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
        )

    def __call__(self, progress: Progress) -> None:
        if self._bar is not None:
            self._bar.set_description(progress.phase, refresh=False)
            self._bar.set_postfix_str(f"{progress.bytes / 1e6:.1f} MB", refresh=False)
            self._bar.update(round(progress.fraction * 100) - self._bar.n)

    def close(self, ended: bool) -> None:
        if self._bar is not None:
            if ended:
                self._bar.update(100 - self._bar.n)
            self._bar.close()


class _Told:
    """Hands what the native half says to a listener, and ends its bar."""

    def __init__(self, listener: Listener) -> None:
        self._bar = _Bar() if listener is True else None
        told = self._bar if self._bar is not None else listener
        self.call: Callable[..., None] | None = None
        if callable(told):
            self.call = lambda *step: told(Progress(*step))

    def __enter__(self) -> Callable[..., None] | None:
        return self.call

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._bar is not None:
            self._bar.close(kind is None)


@dataclass(frozen=True)
class KeyPair:
    """The two files of a key pair, and the public key's fingerprint."""

    private: str
    public: str
    fingerprint: str


def keygen(path: Path, comment: str = "") -> KeyPair:
    """Makes a key pair that names one party: `path` (private, mode 600), and beside it the ``.pub`` for the peer.

    Tell the peer the fingerprint by another way than the file. Errors if a file is there already.
    """
    return KeyPair(*(str(part) for part in _tacit.keygen(path, comment)))


def fingerprint(path: Path) -> str:
    """The fingerprint of a public key file."""
    return _tacit.fingerprint(path)


def functions() -> dict[str, str]:
    """The functions that :func:`evaluate` knows by name, and what they do."""
    return {name: about for name, _, about in _tacit.functions()}


@dataclass(frozen=True)
class _Passed:
    """What a job took: bytes, rounds of messages, and seconds from handshake to result."""

    bytes_sent: int
    bytes_received: int
    rounds: int


def _library(name: str, wanted: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(f"{name} is not installed here: pip install {wanted} {name}") from None


@dataclass(frozen=True)
class Intersection(_Passed):
    """What an intersection gave.

    It is an Arrow stream itself, of your matching rows: ``polars.DataFrame(result)``, ``pyarrow.table(result)`` and
    ``duckdb.sql("from result")`` take it without a copy. :meth:`to_pandas` and :meth:`to_polars` convert it, and
    ``for row in result`` has a dictionary for each row, or the string if a list was intersected.
    """

    seconds: float
    #: The protocol that ran.
    protocol: str
    #: How many distinct keys the peer announced.
    peer_keys: int
    #: What the peer learned of you, in words.
    peer_learned: str
    #: How many of your distinct keys the peer has too; ``None`` if only the peer gets a result.
    matches: int | None = None
    #: Your rows whose keys match, as an object with ``__arrow_c_stream__``; ``None`` as above. With columns of the
    #: peer's they come after yours as ``peer_COL``.
    rows: Any = field(default=None, repr=False)
    #: What a count, a sum, the largest or the smallest number came to; the sum of a mean is in `total`. ``None`` where
    #: there is none, where it is withheld, and where only the peer gets it.
    value: int | float | None = None
    #: Whether fewer keys than `min_matches` are common, so that nothing is told.
    withheld: bool = False
    #: The sum that a mean comes from.
    total: int | None = None
    #: How many rows a mean is of.
    counted: int | None = None
    #: With ``rest=True`` your other rows, as an Arrow stream: those whose key the peer does not have, and those without.
    rest: Any = field(default=None, repr=False)
    #: With ``all_rows=True`` all of your rows, as an Arrow stream, with a column ``matched`` and the peer's columns, which
    #: are null where a row does not match.
    all_rows: Any = field(default=None, repr=False)
    #: How many of your rows match; ``None`` as `matches`.
    matching_rows: int | None = None
    #: With `or_keys`, or types for near matches, what there is of each identifier, and what was found.
    identifiers: tuple[Identifier, ...] = ()
    _values: bool = field(default=False, repr=False)

    def __len__(self) -> int:
        return len(self._stream())

    def _stream(self) -> Any:
        if self.rows is None:
            raise UsageError("only the peer gets a result of this intersection")
        return self.rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._stream().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Your matching rows as a DataFrame of pandas, which needs pyarrow for it."""
        table = _library("pyarrow", "pandas").table(self)
        frame: pandas.DataFrame = table.to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Your matching rows as a DataFrame of Polars."""
        frame: polars.DataFrame = _library("polars", "polars").DataFrame(self)
        return frame

    def __iter__(self) -> Iterator[Any]:
        if self._values:
            return iter(self.to_list())
        try:
            return iter(self.to_polars().iter_rows(named=True))
        except UsageError:
            return iter(_library("pyarrow", "polars or pyarrow").table(self).to_pylist())

    def to_list(self) -> list[str]:
        """The matching strings, if a list of strings was intersected; a table's rows are an Arrow stream."""
        rows = self._stream()
        if not self._values:
            raise UsageError("these are rows of a table: use to_pandas() or to_polars()")
        values: list[str] = rows.strings()
        return values


@dataclass(frozen=True)
class Offer:
    """The terms of a run that a service offers."""

    #: The job's name.
    job: str
    #: The terms for people, a line each; ``str()`` joins them.
    lines: tuple[str, ...]
    #: The same as the record has them.
    terms: Mapping[str, Any] = field(repr=False)
    #: The hash of the terms without run, budgets and sizes: what ``terms`` of :func:`request` takes.
    hash: str = ""

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Granted(Intersection):
    """What an intersection with a service gave, and where the record of it lies."""

    #: The run's name, which both sides' logs and records have.
    run: str = ""
    #: The folder of your signed records.
    records: str = ""
    #: Whether both sides have signed the record.
    signed_by_both: bool = False


def _uses(allow: Mapping[str, Use | Sequence[Use]] | None) -> list[tuple[str, str]] | None:
    """What columns may be used for, as the native half takes it."""
    if allow is None:
        return None
    uses = {column: [use] if isinstance(use, str) else list(use) for column, use in allow.items()}
    return [(column, use) for column, of in uses.items() for use in of]


def _recorded_values(table: Any, keep: Path | None) -> bool:
    """Whether a table of a run that is recorded is a list of strings; an error if no file holds it."""
    in_memory = not isinstance(table, (str, os.PathLike))
    if in_memory == (keep is None):
        raise UsageError(
            "a record commits to a file: give the table's path, or a table in memory and keep=, "
            "the new Arrow file to store it in"
        )
    return in_memory and not _is_arrow(table)


def _taken(
    offered: _tacit.Offered,
    job: str,
    table: Any,
    admit: Callable[[], On | None],
    accept: Callable[[Offer], bool] | Literal[True],
    keep: Path | None,
    *,
    null: str | Sequence[str],
    or_keys: Sequence[On] = (),
    max_row_mib: int | None,
) -> _tacit.Keys:
    """The keys of a table once the terms of `offered` are taken, of the columns that `admit` says; otherwise the offer
    is declined."""
    kept = None
    try:
        offer_terms = json.loads(offered.terms())
        on, path = admit(), table
        if keep is not None:
            values = _recorded_values(table, keep)
            path, on = keep, _VALUES if values else on
            _tacit.keep(_tacit.Rows.of_strings(list(table)) if values else table, keep)
            kept = keep
        normalisation = (offer_terms["nfc"], offer_terms["trim"], offer_terms["case_fold"])
        keys: _tacit.Keys
        keys, _ = _keys(
            path, on, *normalisation, null, or_keys=or_keys, max_row_mib=max_row_mib, recorded=True
        )
        offer = Offer(job, tuple(offered.words(keys.distinct)), offer_terms, offered.terms_hash())
        _log.info("%s", offer)
        if not (accept is True or accept(offer)):
            raise Declined("the terms were declined")
    except BaseException:
        with suppress(Error):
            offered.decline()
        if kept is not None:
            os.remove(kept)
        raise
    return keys


def _record(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Where the record of a run lies, and whether both sides have signed it."""
    if raw["record_fault"] is not None:
        _log.error(
            "run %s is complete, but its record could not be written: %s; the next request records it once "
            "that is fixed",
            raw["run"],
            raw["record_fault"],
        )
    return {"run": raw["run"], "records": os.fspath(raw["records"]), "signed_by_both": raw["signed"]}


def _literal(value: Any) -> str:
    """A value as programs and functions read it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(inputs: Any) -> str:
    """Your inputs of one evaluation of a function by name."""
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return ",".join(_literal(value) for value in inputs)
    return _literal(inputs)


def _left_open(
    entry: str | None, garbler_inputs: int | None, constants: Mapping[str, Any] | None, bits: str
) -> dict[str, Any]:
    """What a program or a circuit's file leaves open, as the native half takes it."""
    if garbler_inputs is not None and not (isinstance(garbler_inputs, int) and 0 <= garbler_inputs < 1 << 32):
        raise UsageError("garbler_inputs: give how many of the first inputs are the garbler's")
    if constants is not None and not isinstance(constants, Mapping):
        raise UsageError('constants: give their values by name, such as {"SHOP::ROWS": 8}')
    values = {str(name): _literal(value) for name, value in (constants or {}).items()}
    return {"entry": entry, "garbler_inputs": garbler_inputs, "constants": values, "bits": bits}


def _parameters(function: Function, table: Any, columns: Sequence[str] | None) -> list[dict[str, Any]]:
    """The rows of a table whose columns are called as parameters of `function` are."""
    names = [parameter.name for parameter in function.parameters]
    if columns is None:
        columns = [name for name in _tacit.table_columns(table) if name in names]
    rows: list[list[str]] = _tacit.table_texts(table, list(columns))
    return [dict(zip(columns, map(json.loads, row), strict=True)) for row in rows]


def _value(literal: str) -> Any:
    """What a program's result is worth in Python: a number, a truth value, else its text."""
    if literal in ("true", "false"):
        return literal == "true"
    try:
        return int(literal)
    except ValueError:
        return literal


@dataclass(frozen=True)
class Evaluation(_Passed):
    """What the evaluation of a function gave."""

    #: The result as the function shapes it; of a function by name a number, or a list of them. ``None`` if only
    #: the peer gets one.
    result: Any
    #: The protocol that gave it.
    protocol: str
    #: The same for every row where several were evaluated.
    rows: list[Any] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Transfers(_Passed):
    """Correlations as NumPy arrays: blocks of 128 bits are rows of two ``uint64``, the low half first.

    All of it is secret.
    """

    #: The protocol that made them; ``None`` for VOLE.
    protocol: str | None
    _arrays: dict[str, Any] = field(repr=False)

    def __getitem__(self, name: str) -> NDArray[numpy.generic]:
        array: NDArray[numpy.generic] = self._arrays[name]
        return array

    def __getattr__(self, name: str) -> NDArray[numpy.generic]:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError(name)
        return self[name]

    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._arrays)


@dataclass(frozen=True)
class File:
    """A file of a table, or several as one table, and how it is written where that is not what its first bytes say.

    ``File("kunden.csv", encoding="windows-1252")`` goes wherever a path of a table does. The options are the
    command's: what separates and encloses fields, the encoding, lines to skip in front of the header.
    """

    #: A file, folder, pattern or address; several of them are one table, in their order.
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    #: One character, ``"auto"`` or ``"\\t"``.
    delimiter: str = "auto"
    #: One character, or ``"none"``.
    quote: str = '"'
    escape: str | None = None
    #: Whether the first line names the columns; else they are called ``"1"``, ``"2"``, …
    header: bool = True
    #: Such as ``"windows-1252"`` or ``"utf-16le"``; UTF-8 if not given.
    encoding: str | None = None
    skip_lines: int = 0
    #: Whether Parquet columns of bytes that have no type of their own hold text.
    binary_as_text: bool = False
    #: Whether amounts in text (``sum:COL:decimal2``) have a comma before the fraction.
    decimal_comma: bool = False
    #: What a workbook's cells with errors are: ``"refuse"`` or ``"null"``, empty.
    error_cells: str = "refuse"

    def places(self) -> list[str]:
        """The paths and addresses."""
        paths: Sequence[str | os.PathLike[str]]
        paths = [self.path] if isinstance(self.path, (str, os.PathLike)) else self.path
        return [os.fspath(path) for path in paths]

    def __fspath__(self) -> str:
        places = self.places()
        if len(places) != 1:
            raise UsageError("a table of several files has no path")
        return places[0]


@dataclass(frozen=True)
class Reason:
    """Why values of a column are no keys, and in how many rows."""

    column: str
    type: str
    #: In words, such as ``not a valid e-mail address``.
    reason: str
    rows: int


@dataclass(frozen=True)
class Identifier:
    """One of several identifiers by which rows may match."""

    #: Its columns' names, joined by ``+``.
    name: str
    #: Your rows that have it.
    rows: int
    #: Its distinct values in your rows, each of which counts as a key.
    distinct: int
    #: How many of these the peer has too; ``None`` without a result.
    matches: int | None = None
    #: Your rows that match by it and by none in front of it.
    rows_matched_by: int | None = None


@dataclass(frozen=True)
class Check:
    """What an intersection would see of a table."""

    rows: int
    #: Distinct keys: what would be intersected.
    keys: int
    #: Rows whose key is empty or null; they never match.
    rows_without_key: int
    #: Rows whose key an earlier row has.
    duplicate_rows: int
    #: Why rows have no key, the most frequent first.
    reasons: tuple[Reason, ...] = ()
    #: What is odd about the keys, in words: words for nothing, text that looks like another type.
    hints: tuple[str, ...] = ()
    #: What there is of each identifier, where there are several.
    identifiers: tuple[Identifier, ...] = ()


_PASSED = ("bytes_sent", "bytes_received", "rounds")


def _passed(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: raw[name] for name in _PASSED}


#: The column that a list of strings becomes.
_VALUES = "value"


def _is_arrow(table: Any) -> bool:
    return hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")


def _columns(on: On, or_keys: Sequence[On] = ()) -> tuple[list[str], list[str] | None, list[int]]:
    """The columns of all identifiers, their types, and where each identifier but the first begins."""
    if isinstance(or_keys, (str, Mapping)):
        raise UsageError(
            'or_keys: give a list of identifiers, such as ["phone", {"name": "name", "born": "date"}]'
        )
    names = [on] if isinstance(on, str) else list(on)
    types = list(on.values()) if isinstance(on, Mapping) else None
    further: list[int] = []
    if or_keys:
        types = types or ["text"] * len(names)
        for one in or_keys:
            columns = [one] if isinstance(one, str) else list(one)
            if not columns:
                raise UsageError("or_keys: each identifier has one column at least")
            further.append(len(names))
            names += columns
            types += list(one.values()) if isinstance(one, Mapping) else ["text"] * len(columns)
    return names, types, further


def _keys(
    table: Any,
    on: On | None,
    nfc: bool,
    trim: bool,
    case_fold: bool,
    null: str | Sequence[str] = (),
    *,
    or_keys: Sequence[On] = (),
    max_row_mib: int | None = None,
    recorded: bool = False,
) -> tuple[Any, bool]:
    nulls = [null] if isinstance(null, str) else list(null)
    if on is None and or_keys:
        raise UsageError("or_keys: these are further identifiers; name the first one with on")
    names, types, further = _columns(on, or_keys) if on is not None else (None, None, [])
    path = isinstance(table, (str, os.PathLike))
    if path or _is_arrow(table):
        if names is None:
            raise UsageError('on: name the column (or the columns) that make the key, such as on="email"')
        digest, comma = None, False
        if path:
            file = table if isinstance(table, File) else File(table)
            places = file.places()
            if len(places) == 1 and isinstance(places[0], str) and places[0].startswith("adbc:"):
                table = _adbc.answer(places[0])
            else:
                table = _tacit.Rows.of_files(
                    places,
                    names,
                    types,
                    delimiter=file.delimiter,
                    quote=file.quote,
                    escape=file.escape,
                    header=file.header,
                    encoding=file.encoding,
                    skip_lines=file.skip_lines,
                    max_row_mib=max_row_mib,
                    binary_as_text=file.binary_as_text,
                    error_cells=file.error_cells,
                    recorded=recorded,
                )
            digest, comma = table.digest, file.decimal_comma
        return _tacit.Keys(
            table,
            names,
            types=types,
            further=further,
            nfc=nfc,
            trim=trim,
            case_fold=case_fold,
            nulls=nulls,
            digest=digest,
            decimal_comma=comma,
        ), False
    if isinstance(table, Iterable):
        values = list(table)
        if names is not None:
            raise UsageError("on: a list of strings has no columns")
        if all(isinstance(value, str) for value in values):
            native = _tacit.Rows.of_strings(values)
            return _tacit.Keys(native, [_VALUES], nfc=nfc, trim=trim, case_fold=case_fold, nulls=nulls), True
    raise UsageError(
        f"a {type(table).__name__} is not a table; give something with __arrow_c_stream__ (pandas 2.2 or later, "
        "Polars, DuckDB, pyarrow) or a list of strings"
    )


def _identifiers(keys: Any, raw: Mapping[str, Any] | None = None) -> tuple[Identifier, ...]:
    """What a table has of each of several identifiers, or of variants, and what a run found of them; nothing of one key."""
    if len(keys.identifiers) == 1 and not keys.has_variants:
        return ()
    found = (raw or {}).get("identifiers") or [(None, None)] * len(keys.identifiers)
    return tuple(Identifier(*has, *matched) for has, matched in zip(keys.identifiers, found, strict=True))


def _gained(raw: Mapping[str, Any], values: bool, keys: Any) -> dict[str, Any]:
    value, counted, total = raw.get("value"), raw.get("counted"), None
    if counted is not None:
        value, total = (value / counted if counted else None), value
    return {
        **_passed(raw),
        "seconds": raw["seconds"],
        "protocol": raw["protocol"],
        "peer_keys": raw["peer_keys"],
        "peer_learned": raw["peer_learned"],
        "matches": raw.get("matches"),
        "matching_rows": raw.get("matching_rows"),
        "identifiers": _identifiers(keys, raw),
        "rows": raw.get("rows"),
        "value": value,
        "withheld": raw.get("withheld", False),
        "total": total,
        "counted": counted,
        "rest": raw.get("rest"),
        "all_rows": raw.get("all_rows"),
        "_values": values,
    }


class Settings(TypedDict, total=False):
    """What more :class:`Session` takes, and every job does."""

    security: Literal["malicious", "semi-honest"]
    threads: int | None
    post_quantum: bool
    base_ot: str | None
    timeout: float | None
    wait: float | None
    link: str | None


class Session:
    """How to reach the peer, whom to accept, and how much to trust it: for several jobs.

    Each job opens a connection of its own, so both sides do the same jobs in the same order.

    Parameters
    ----------
    listen, connect, via:
        How the sides meet: one listens (``"0.0.0.0:7700"``) and the other connects (``"host:7700"``), or both name the
        same relay (``via="relay:7710"``).
    identity, peer:
        Your private key file and the peer's public one, from :func:`keygen`. Without both there is no TLS, which is
        refused for addresses beyond this machine.
    security:
        ``"malicious"`` (a peer that cheats is caught) or ``"semi-honest"``.
    threads:
        Computing threads, each with a connection of its own; 1 if not given. Must match on both sides. An
        intersection has one connection, and computes on all cores if not given: there it is each side's own affair.
    post_quantum:
        Refuses what falls to a quantum computer.
    timeout:
        Seconds in which no byte may move; 120.
    wait:
        Seconds to wait for the peer; 600 where it listens, 30 where it connects.
    link:
        Emulates a slower link, such as ``"100/5"``: 100 Mbit/s, 5 ms one way.
    proxy:
        An HTTP proxy (``"host:port"`` or ``"http://user:password@host:port"``) that leads to the peer or the relay
        by the method CONNECT; by default that of ``HTTPS_PROXY``, unless ``NO_PROXY`` has the host.
    """

    def __init__(
        self,
        *,
        listen: str | None = None,
        connect: str | None = None,
        via: str | None = None,
        identity: Path | None = None,
        peer: Path | None = None,
        security: Literal["malicious", "semi-honest"] = "malicious",
        threads: int | None = None,
        post_quantum: bool = False,
        base_ot: str | None = None,
        timeout: float | None = None,
        wait: float | None = None,
        link: str | None = None,
        proxy: str | None = None,
    ) -> None:
        self._peer = _tacit.Peer(
            listen=listen,
            connect=connect,
            via=via,
            identity=identity,
            peer=peer,
            security=security,
            threads=threads,
            post_quantum=post_quantum,
            base_ot=base_ot,
            timeout=timeout,
            wait=wait,
            link=link,
            proxy=proxy,
        )

    def intersect(
        self,
        table: Any,
        on: On | None = None,
        *,
        or_keys: Sequence[On] = (),
        matched_by: str | None = None,
        result: Literal["me", "peer", "both"] = "me",
        reveal: str = "rows",
        give: str | Sequence[str] = (),
        duplicates: Literal["refuse", "first", "all"] = "refuse",
        min_matches: int = 0,
        bounds: Bounds | None = None,
        result_to_owner: bool = False,
        protocol: str = "auto",
        max_peer_keys: int | None = None,
        max_cell: int | None = None,
        allow_line_ends: bool = False,
        rest: bool = False,
        all_rows: bool = False,
        null: str | Sequence[str] = (),
        max_row_mib: int | None = None,
        nfc: bool = True,
        trim: bool = True,
        case_fold: bool = True,
        progress: Listener = None,
    ) -> Intersection:
        """As :func:`tacit.intersect`, with this session's peer."""
        keys, values = _keys(table, on, nfc, trim, case_fold, null, or_keys=or_keys, max_row_mib=max_row_mib)
        with _Told(progress) as told:
            raw = _tacit.intersect(
                self._peer,
                keys,
                result=result,
                reveal=reveal,
                give=[give] if isinstance(give, str) else list(give),
                duplicates=duplicates,
                min_matches=min_matches,
                bounds=_written(bounds),
                result_to_owner=result_to_owner,
                protocol=protocol,
                max_peer_keys=max_peer_keys,
                max_cell=max_cell,
                allow_line_ends=allow_line_ends,
                rest=rest,
                all_rows=all_rows,
                matched_by=matched_by,
                progress=told,
            )
        return Intersection(**_gained(raw, values, keys))

    def link(
        self,
        table: Any,
        on: On | None = None,
        *,
        id_column: str = "link_id",
        max_peer_keys: int | None = None,
        null: str | Sequence[str] = (),
        max_row_mib: int | None = None,
        nfc: bool = True,
        trim: bool = True,
        case_fold: bool = True,
        progress: Listener = None,
    ) -> Linked:
        """As :func:`tacit.link`, with this session's peer."""
        from ._link import _linked

        keys, values = _keys(table, on, nfc, trim, case_fold, null, max_row_mib=max_row_mib)
        with _Told(progress) as told:
            raw = _tacit.link(
                self._peer, keys, id_column=id_column, max_peer_keys=max_peer_keys, progress=told
            )
        return _linked(raw, values)

    def query(
        self,
        sql: str,
        table: Any,
        *,
        side: Literal["ours", "theirs"] | None = None,
        result: Literal["me", "peer", "both"] = "me",
        min_group: int = 10,
        allow: Mapping[str, Use | Sequence[Use]] | None = None,
        result_to_owner: bool = False,
        duplicates: Literal["refuse", "first"] = "refuse",
        max_peer_keys: int | None = None,
        null: str | Sequence[str] = (),
        max_row_mib: int | None = None,
        nfc: bool = True,
        trim: bool = True,
        case_fold: bool = True,
        progress: Listener = None,
    ) -> Answer:
        """As :func:`tacit.query`, with this session's peer."""
        from ._query import _answer

        if duplicates not in ("refuse", "first"):
            raise UsageError('duplicates: "refuse" or "first"')
        question = _tacit.Question(sql, self._peer, side)
        keys, values = _keys(table, dict(question.key), nfc, trim, case_fold, null, max_row_mib=max_row_mib)
        if values:
            raise UsageError("a question is about a table with columns, not about a list of strings")
        with _Told(progress) as told:
            raw = _tacit.query(
                self._peer,
                keys,
                question,
                result=result,
                min_group=min_group,
                allow=_uses(allow),
                result_to_owner=result_to_owner,
                first=duplicates == "first",
                max_peer_keys=max_peer_keys,
                progress=told,
            )
        return _answer(raw)

    def request(
        self,
        job: str,
        table: Any,
        on: On | None = None,
        *,
        or_keys: Sequence[On] = (),
        matched_by: str | None = None,
        accept: Callable[[Offer], bool] | Literal[True],
        result: Literal["me", "peer", "both"] | None = None,
        reveal: str | None = None,
        give: str | Sequence[str] = (),
        result_to_owner: bool = False,
        bounds: Bounds | None = None,
        max_peer_keys: int | None = None,
        terms: str | None = None,
        duplicates: Literal["refuse", "first", "all"] = "refuse",
        max_cell: int | None = None,
        allow_line_ends: bool = False,
        rest: bool = False,
        all_rows: bool = False,
        null: str | Sequence[str] = (),
        max_row_mib: int | None = None,
        keep: Path | None = None,
        records: Path | None = None,
        progress: Listener = None,
    ) -> Granted:
        """As :func:`tacit.request`, with this session's peer, which is the service."""
        values = _recorded_values(table, keep)
        gives = [give] if isinstance(give, str) else list(give)
        with _Told(progress) as told:
            offered = _tacit.ask(self._peer, job, reveal=reveal, result=result, progress=told)

            def admit() -> On | None:
                offered.admit(
                    *(_columns(on, or_keys) if on is not None else ([_VALUES], None, [])),
                    gives,
                    unattended=accept is True and result is None,
                    seen=accept is not True,
                    bounds=_written(bounds) if result_to_owner else None,
                    max_peer_keys=max_peer_keys,
                    terms=terms,
                    max_cell=max_cell,
                )
                return on

            keys = _taken(
                offered,
                job,
                table,
                admit,
                accept,
                keep,
                null=null,
                or_keys=or_keys,
                max_row_mib=max_row_mib,
            )
            raw = offered.run(
                keys,
                duplicates=duplicates,
                records=records,
                max_cell=max_cell,
                allow_line_ends=allow_line_ends,
                rest=rest,
                all_rows=all_rows,
                matched_by=matched_by,
            )
        return Granted(**_gained(raw, values, keys), **_record(raw))

    def ask(
        self,
        job: str,
        table: Any,
        *,
        sql: str | None = None,
        question: str | None = None,
        values: Mapping[str, Any] | None = None,
        accept: Callable[[Offer], bool] | Literal[True],
        result: Literal["me", "peer", "both"] | None = None,
        min_group: int = 10,
        allow: Mapping[str, Use | Sequence[Use]] | None = None,
        result_to_owner: bool = False,
        max_peer_keys: int | None = None,
        terms: str | None = None,
        duplicates: Literal["refuse", "first"] = "refuse",
        null: str | Sequence[str] = (),
        max_row_mib: int | None = None,
        keep: Path | None = None,
        records: Path | None = None,
        progress: Listener = None,
    ) -> Answered:
        """As :func:`tacit.ask`, with this session's peer, which is the service."""
        from ._query import Answered, _answer_of

        if duplicates not in ("refuse", "first"):
            raise UsageError('duplicates: "refuse" or "first"')
        if (sql is None) == (question is None):
            raise UsageError("give sql=, a text of your own, or question=, the name of one of the service's")
        if values is not None and question is None:
            raise UsageError(
                "values: they are those of a question of the service's; give question=, its name"
            )
        if _recorded_values(table, keep):
            raise UsageError("a question is about a table with columns, not about a list of strings")
        if values is not None and not isinstance(values, Mapping):
            raise UsageError('values: give them by name, such as {"least": 100}')
        chosen = [(str(name), str(value)) for name, value in (values or {}).items()]
        with _Told(progress) as told:
            offered = _tacit.ask(
                self._peer,
                job,
                result=result,
                sql=sql,
                question=None if question is None else (question, chosen),
                progress=told,
            )

            def admit() -> On:
                offered.admit_answer(
                    unattended=accept is True and result is None,
                    min_group=min_group,
                    allow=_uses(allow),
                    result_to_owner=result_to_owner,
                    max_peer_keys=max_peer_keys,
                    terms=terms,
                )
                return dict(offered.answer_key())

            keys = _taken(offered, job, table, admit, accept, keep, null=null, max_row_mib=max_row_mib)
            raw = offered.answer(keys, first=duplicates == "first", records=records)
        return Answered(**_answer_of(raw), **_record(raw))

    def evaluate(
        self,
        function: Function | str,
        inputs: Mapping[str, Any] | int | str | Sequence[int] | None = None,
        *,
        rows: Any = None,
        columns: Sequence[str] | None = None,
        role: Literal["garbler", "evaluator"] | None = None,
        output_to: Literal["me", "peer", "both"] = "both",
        signed: bool = False,
        protocol: str = "auto",
        entry: str | None = None,
        garbler_inputs: int | None = None,
        constants: Mapping[str, int | bool | str] | None = None,
        bits: Literal["usual", "reversed"] = "usual",
        progress: Listener = None,
    ) -> Evaluation:
        """As :func:`tacit.evaluate`, with this session's peer."""
        if (inputs is None) == (rows is None):
            raise UsageError("inputs: give your inputs of one evaluation, or rows= of several")
        table = rows is not None and _is_arrow(rows)
        if columns is not None and not table:
            raise UsageError("columns: they are of a table, which rows= gives")
        program = _left_open(entry, garbler_inputs, constants, bits)
        if isinstance(function, Function):
            given = _parameters(function, rows, columns) if table else rows
            if rows is None:
                given = [inputs]
            if not all(isinstance(row, Mapping) for row in given):
                raise UsageError('inputs: give your parameters by name, such as {"ours": 5}')
            mappings = [dict(row) for row in given]
            return self._traced(
                function, mappings, rows is None, role, output_to, protocol, program, progress
            )
        if role is None:
            raise UsageError(
                'role: a function by its name needs one, "garbler" on one side, "evaluator" on the other'
            )
        texts = rows if table else [_text(row) for row in ([inputs] if rows is None else rows)]
        names = None if columns is None else list(columns)
        raw = self._evaluate(function, role, texts, names, output_to, signed, protocol, program, progress)
        ran = raw["protocol"]
        if raw["outputs"] is None:
            return Evaluation(**_passed(raw), result=None, protocol=ran)
        if "literals" in raw:
            literals = [literal for (literal,) in raw["literals"]]
            if rows is None and literals[0].startswith("fault: "):
                raise OutOfRange(f"{function}: {literals[0].removeprefix('fault: ')}")
            values = [None if literal.startswith("fault: ") else _value(literal) for literal in literals]
            result = values[0] if rows is None else values
            return Evaluation(**_passed(raw), result=result, protocol=ran, rows=values)
        lists: list[Any] = [
            [[int(part) for part in one.split(",")] if "," in one else int(one) for one in row]
            for row in raw["outputs"]
        ]
        single = [row[0] if len(row) == 1 else row for row in lists]
        return Evaluation(
            **_passed(raw), result=single[0] if rows is None else single, protocol=ran, rows=lists
        )

    def _evaluate(
        self,
        function: Any,
        role: str,
        rows: Any,
        columns: list[str] | None,
        output_to: str,
        signed: bool,
        protocol: str,
        program: dict[str, Any],
        progress: Listener,
    ) -> dict[str, Any]:
        other = {"garbler": "evaluator", "evaluator": "garbler"}
        if role not in other:
            raise UsageError('role is "garbler" or "evaluator"')
        sides = {"me": role, "peer": other[role], "both": "both"}
        if output_to not in sides:
            raise UsageError('output_to is "me", "peer" or "both"')
        with _Told(progress) as told:
            return _tacit.evaluate(
                self._peer,
                function,
                role,
                rows,
                columns=columns,
                output_to=sides[output_to],
                signed=signed,
                protocol=protocol,
                **program,
                progress=told,
            )

    def _traced(
        self,
        function: Function,
        rows: list[dict[str, Any]],
        single: bool,
        role: str | None,
        output_to: str,
        protocol: str,
        program: dict[str, Any],
        progress: Listener,
    ) -> Evaluation:
        names = [parameter.name for parameter in function.parameters]
        given = set(rows[0]) if rows else set(names)
        unknown = sorted(given - set(names))
        if unknown:
            raise UsageError(f"{function.name} has no parameter {unknown[0]}; it has {', '.join(names)}")
        if not given or len(given) == len(names):
            raise UsageError(
                f"inputs: each side gives some of the parameters {', '.join(names)}, none gives all"
            )
        if any(set(row) != given for row in rows):
            raise UsageError("rows: every row gives the same parameters")
        # Both sides see it alike: who owns the first parameter garbles.
        ours = "garbler" if names[0] in given else "evaluator"
        if role is not None and role != ours:
            raise UsageError(f"role: who gives {names[0]} is the garbler")
        garbler = [name for name in names if (name in given) == (ours == "garbler")]
        circuit, shape = function.circuit(garbler)
        texts = [function._text(row) for row in rows]
        raw = self._evaluate(circuit, ours, texts, None, output_to, False, protocol, program, progress)
        ran = raw["protocol"]
        if raw["outputs"] is None:
            return Evaluation(**_passed(raw), result=None, protocol=ran)
        if single:
            result = function._result(shape, raw["outputs"][0])
            return Evaluation(**_passed(raw), result=result, protocol=ran, rows=[result])
        results: list[Any] = []
        for row in raw["outputs"]:
            try:
                results.append(function._result(shape, row))
            except OutOfRange:
                results.append(None)
        return Evaluation(**_passed(raw), result=results, protocol=ran, rows=results)

    def ot(
        self,
        n: int | None = None,
        *,
        role: Literal["sender", "receiver"],
        kind: Literal["cot", "rot", "ot"] | None = None,
        messages: tuple[Any, Any] | None = None,
        choices: Any = None,
        max_message: int = 1 << 20,
        of: int | None = None,
        protocol: str | None = None,
        progress: Listener = None,
    ) -> Transfers:
        """As :func:`tacit.ot`, with this session's peer."""
        if of is not None:
            if (
                n is None
                or kind not in (None, "rot")
                or messages is not None
                or choices is not None
                or protocol
            ):
                raise UsageError("of: goes only with n and role, because such transfers are random")
            with _Told(progress) as told:
                raw = _tacit.vole(self._peer, role, n, of=of, progress=told)
            return _transfers(raw)
        if messages is not None and role != "sender":
            raise UsageError('messages: these are the sender\'s; give role="sender"')
        if choices is not None and role != "receiver":
            raise UsageError('choices: these are the receiver\'s; give role="receiver"')
        own = messages is not None or choices is not None
        kind = kind or ("ot" if own else "rot")
        if own and kind != "ot":
            raise UsageError('kind: messages and choices of one\'s own go with "ot"')
        given = None if messages is None else _own_messages(*messages)
        bits = None if choices is None else _own_choices(choices)
        counted = given[0] if given is not None else None if bits is None else len(bits)
        if counted is not None and n not in (None, counted):
            raise UsageError(f"n: {n}, and there are {counted}")
        count = n if counted is None else counted
        if count is None:
            raise UsageError("n: give the number of transfers, or messages or choices")
        with _Told(progress) as told:
            raw = _tacit.ot(
                self._peer,
                role,
                count,
                kind=kind,
                protocol=protocol,
                messages=None if given is None else given[1:],
                choices=bits,
                max_message=max_message,
                progress=told,
            )
        return _transfers(raw)

    def vole(
        self,
        n: int,
        *,
        role: Literal["sender", "receiver"],
        field: Literal["gf128", "gf4", "gf16", "gf256", "p61", "p128"] = "gf128",
        progress: Listener = None,
    ) -> Transfers:
        """As :func:`tacit.vole`, with this session's peer."""
        with _Told(progress) as told:
            raw = _tacit.vole(self._peer, role, n, field=field, progress=told)
        return _transfers(raw)

    def triples(
        self,
        n: int,
        *,
        kind: Literal["bits", "words", "field"],
        field: Literal["gf128", "p61", "p128"] | None = None,
        protocol: str | None = None,
        progress: Listener = None,
    ) -> Transfers:
        """As :func:`tacit.triples`, with this session's peer."""
        protocol = None if protocol == "auto" else protocol
        with _Told(progress) as told:
            raw = _tacit.triples(self._peer, n, kind=kind, field=field, protocol=protocol, progress=told)
        return _transfers(raw)


def _own_choices(choices: Any) -> bytes:
    """A byte of 0 or 1 for each choice."""
    bits = list(choices)
    if any(bit not in (0, 1) for bit in bits):
        raise UsageError("choices: each is 0 or 1")
    return bytes(int(bit) for bit in bits)


def _own_messages(zero: Any, one: Any) -> tuple[int, str, int, Any]:
    """How many pairs, their form and width, and both messages of each one after the other."""
    if len(zero) != len(one):
        raise UsageError(f"messages: {len(zero)} in the first, {len(one)} in the second")
    form = {str(getattr(half, "dtype", "")) for half in (zero, one)}
    if form in ({"uint64"}, {"uint8"}):
        import numpy

        wide = form == {"uint64"}
        if zero.ndim != 2 or zero.shape != one.shape or zero.shape[1] == 0 or (wide and zero.shape[1] != 2):
            raise UsageError("messages: arrays of one shape, uint64[n, 2] or uint8[n, bytes]")
        rows = numpy.stack([zero, one], axis=1).astype("<u8" if wide else "u1")
        width = rows.shape[2] * rows.itemsize
        return len(zero), "blocks" if wide else "bytes", width, rows.tobytes()
    flat = [message for pair in zip(zero, one, strict=True) for message in pair]
    for kind, word in ((str, "text"), (bytes, "strings")):
        if all(isinstance(message, kind) for message in flat):
            return len(zero), word, 0, [kind(message) for message in flat]
    raise UsageError("messages: two lists of str or of bytes, or two arrays uint64[n, 2] or uint8[n, bytes]")


def _transfers(raw: dict[str, Any]) -> Transfers:
    arrays = {name: value for name, value in raw.items() if name not in (*_PASSED, "protocol")}
    if isinstance(arrays.get("m"), list):
        import numpy

        arrays["m"] = numpy.array(arrays["m"], dtype=object)
    return Transfers(**_passed(raw), protocol=raw.get("protocol"), _arrays=arrays)


def intersect(
    table: Any,
    on: On | None = None,
    *,
    or_keys: Sequence[On] = (),
    matched_by: str | None = None,
    result: Literal["me", "peer", "both"] = "me",
    reveal: str = "rows",
    give: str | Sequence[str] = (),
    duplicates: Literal["refuse", "first", "all"] = "refuse",
    min_matches: int = 0,
    bounds: Bounds | None = None,
    result_to_owner: bool = False,
    protocol: str = "auto",
    max_peer_keys: int | None = None,
    max_cell: int | None = None,
    allow_line_ends: bool = False,
    rest: bool = False,
    all_rows: bool = False,
    null: str | Sequence[str] = (),
    max_row_mib: int | None = None,
    nfc: bool = True,
    trim: bool = True,
    case_fold: bool = True,
    progress: Listener = None,
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Intersection:
    """Which of your rows have a key that the peer has too, or a number over them.

    The peer learns how many distinct keys you have, and what `result` gives it; a peer that cheats is caught
    (``security="malicious"``, the default).

    Parameters
    ----------
    table:
        Anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` (pandas, Polars, DuckDB, pyarrow), the path of a
        CSV or JSON lines (packed or not), Parquet or Arrow file, a :class:`File` that says how one is written, or a
        list of strings.
    on:
        The column, or the columns in the order that both sides agree on, that make the key; with their types,
        such as ``{"mail": "email", "tel": "phone:NL"}``, as the command's ``--key`` has them. Nulls, empty text
        and what is no key of its type make no key; floating-point columns are refused. Types for near matches
        (``{"last": "name~1", "born": "date~1"}``) make several keys of a row, as `or_keys` does.
    or_keys:
        Further identifiers, each as `on` is: a row matches by the first that both sides have. As many, of the same
        types in the same order, on both sides. The side with the result learns for each of its identifiers whether the
        peer has it, and each counts as a key. With ``reveal="rows"`` or ``"payload"``.
    matched_by:
        With `or_keys`, the name of a column of ``rows`` and ``all_rows`` that says by which identifier a row matches.
    result:
        Who gets a result: ``"me"``, ``"peer"`` (the peer then gives ``"me"``) or ``"both"``.
    reveal:
        What is revealed, as the command's ``--reveal`` has it: ``"rows"``; ``"payload:COL,COL"`` for the same with
        columns of the peer's rows (who gives them says ``"payload"``); ``"count"``, ``"sum:COL"``, ``"mean:COL"``
        (at most 16,384 keys a side, unless ``security="semi-honest"``); ``"max:COL"``, ``"min:COL"`` or
        ``"over:N:COL"``, which need ``security="semi-honest"``.
    give:
        Your columns that the peer may have, or the one that numbers are taken from.
    duplicates:
        What happens where several of your rows to give have one key.
    min_matches:
        The fewest common keys of which a number is told; the protocol holds it.
    bounds:
        The least and the most that one key adds to a number, in the column's own unit, such as ``(0, Decimal("7.25"))``
        for ``amount:decimal2``; what is outside counts as the nearer of the two, and a key's rows as one number. The
        same on both sides.
    result_to_owner:
        Lets the side whose column it is get the number, which takes `bounds`: by the numbers that it chooses, that
        side can read 64 memberships and more from one result. The same on both sides.
    protocol:
        ``"auto"``, ``"paxos"`` or ``"vole"``.
    max_peer_keys:
        The most keys that the peer may announce.
    max_cell:
        The most bytes that the peer's columns may take for each of its keys, all columns and rows together: 65,536
        if not given, at most a mebibyte. As much is held for every key that may match.
    allow_line_ends:
        Whether a cell that you give may have more than one line; a file that was read wrongly has such cells.
    rest:
        Whether the result also has your rows without a match, as ``rest``.
    all_rows:
        Whether it has all your rows, each with whether it matches, as ``all_rows``.
    null:
        Words for nothing, such as ``["NULL", "n/a"]``: a cell of the key, or one that you give, counts as empty if it
        is one of them.
    max_row_mib:
        The longest row of a file, in mebibytes; 16 if not given. Nothing for a table in memory.
    nfc, trim, case_fold:
        How text is normalised before it is compared; must match on both sides.
    progress:
        A function that hears of :class:`Progress`, or ``True`` for a bar.
    listen, connect, via, identity, peer, proxy, session:
        How to reach the peer: the parameters of :class:`Session`.

    >>> import tacit, threading
    >>> theirs = threading.Thread(target=tacit.intersect, args=(["ann", "bob"],),
    ...     kwargs=dict(listen="127.0.0.1:7713", result="peer"))
    >>> theirs.start()
    >>> tacit.intersect(["bob", "cleo"], connect="127.0.0.1:7713").to_list()
    ['bob']
    >>> theirs.join()
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.intersect(
        table,
        on,
        or_keys=or_keys,
        matched_by=matched_by,
        result=result,
        reveal=reveal,
        give=give,
        duplicates=duplicates,
        min_matches=min_matches,
        bounds=bounds,
        result_to_owner=result_to_owner,
        protocol=protocol,
        max_peer_keys=max_peer_keys,
        max_cell=max_cell,
        allow_line_ends=allow_line_ends,
        rest=rest,
        all_rows=all_rows,
        null=null,
        max_row_mib=max_row_mib,
        nfc=nfc,
        trim=trim,
        case_fold=case_fold,
        progress=progress,
    )


def request(
    job: str,
    table: Any,
    on: On | None = None,
    *,
    or_keys: Sequence[On] = (),
    matched_by: str | None = None,
    accept: Callable[[Offer], bool] | Literal[True],
    result: Literal["me", "peer", "both"] | None = None,
    reveal: str | None = None,
    give: str | Sequence[str] = (),
    result_to_owner: bool = False,
    bounds: Bounds | None = None,
    max_peer_keys: int | None = None,
    terms: str | None = None,
    duplicates: Literal["refuse", "first", "all"] = "refuse",
    max_cell: int | None = None,
    allow_line_ends: bool = False,
    rest: bool = False,
    all_rows: bool = False,
    null: str | Sequence[str] = (),
    max_row_mib: int | None = None,
    keep: Path | None = None,
    records: Path | None = None,
    progress: Listener = None,
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Granted:
    """Asks a service for an intersection, and runs it if its terms are taken.

    The service offers terms: what either side will learn, by which protocol, the sizes, what is left of its budgets.
    Nothing of your table is told before they are taken. Each run leaves a record signed by both sides.

    Parameters
    ----------
    job:
        The job's name in the service's policy.
    table:
        The path of your table; or a table in memory as for :func:`intersect`, with `keep`.
    on, or_keys, matched_by:
        As for :func:`intersect`; the service's keys are as many columns, in the same order. How text is normalised
        comes with the terms.
    accept:
        What decides: a function that is given the :class:`Offer`, or ``True`` to take any terms that keep to the other
        parameters here. With ``True`` and without `result`, terms by which the service learns rows, or you nothing,
        are rejected.
    result, reveal:
        As for :func:`intersect`, if the job leaves them open. An offer of anything else is rejected.
    result_to_owner, bounds:
        With ``accept=True``: accepts that the owner of a column gets the number that is made of it, and can read from
        it which keys match, if the offer's bounds of what one key adds are within these.
    max_peer_keys:
        The most distinct keys that the service may have.
    terms:
        The hash of terms that were reviewed (:attr:`Offer.hash`): others are rejected.
    give:
        Your columns that may go into the result.
    duplicates, max_cell, allow_line_ends, rest, all_rows, null, max_row_mib:
        As for :func:`intersect`.
    keep:
        Of a table in memory, the new Arrow file to store it in: the record commits to that file.
    records:
        The folder of your records; beside the private key if not given.
    progress:
        As for :func:`intersect`.
    listen, connect, via, identity, peer, proxy, session:
        How to reach the service: the parameters of :class:`Session`. ``security`` and ``post_quantum`` say what is
        taken at least.

    Raises :class:`Declined` where `accept` says no, and :class:`PeerError` where the service refuses, with its rule.
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.request(
        job,
        table,
        on,
        or_keys=or_keys,
        matched_by=matched_by,
        accept=accept,
        result=result,
        reveal=reveal,
        give=give,
        result_to_owner=result_to_owner,
        bounds=bounds,
        max_peer_keys=max_peer_keys,
        terms=terms,
        duplicates=duplicates,
        max_cell=max_cell,
        allow_line_ends=allow_line_ends,
        rest=rest,
        all_rows=all_rows,
        null=null,
        max_row_mib=max_row_mib,
        keep=keep,
        records=records,
        progress=progress,
    )


def check(
    table: Any,
    on: On | None = None,
    *,
    or_keys: Sequence[On] = (),
    null: str | Sequence[str] = (),
    max_row_mib: int | None = None,
    nfc: bool = True,
    trim: bool = True,
    case_fold: bool = True,
) -> Check:
    """What an intersection would see of a table, without a peer; the parameters are those of :func:`intersect`.

    >>> import tacit
    >>> tacit.check(["Ann ", "ann", ""])
    Check(rows=3, keys=1, rows_without_key=1, duplicate_rows=1, reasons=(Reason(column='', type='text', reason='empty', rows=1),), hints=(), identifiers=())
    """
    keys, values = _keys(table, on, nfc, trim, case_fold, null, or_keys=or_keys, max_row_mib=max_row_mib)
    refused = sorted(keys.refused, key=lambda one: -one[3])
    reasons = tuple(Reason("" if values else column, *rest) for column, *rest in refused)
    return Check(
        keys.rows,
        keys.distinct,
        keys.without_key,
        keys.duplicates,
        reasons,
        tuple(keys.hints),
        _identifiers(keys),
    )


def evaluate(
    function: Function | str,
    inputs: Mapping[str, Any] | int | str | Sequence[int] | None = None,
    *,
    rows: Any = None,
    columns: Sequence[str] | None = None,
    role: Literal["garbler", "evaluator"] | None = None,
    output_to: Literal["me", "peer", "both"] = "both",
    signed: bool = False,
    protocol: str = "auto",
    entry: str | None = None,
    garbler_inputs: int | None = None,
    constants: Mapping[str, int | bool | str] | None = None,
    bits: Literal["usual", "reversed"] = "usual",
    progress: Listener = None,
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Evaluation:
    """A function of both sides' numbers, of which each side learns the result and nothing else.

    Parameters
    ----------
    function:
        One made by :func:`tacit.function`; or the name of one of :func:`functions`, a file of a circuit, or a
        program (``"….garble.rs"``). Those too large to hold (``"modexp1024"``) are made while they run: one
        evaluation, by one thread.
    inputs:
        Your inputs: of a Python function by the names of your parameters, the peer giving the others; of a named
        one a number, or several; of a program a literal of its language for each of your parameters, ``""`` where
        none is yours.
    rows:
        Instead of `inputs`, those of several evaluations: a list of such, or a table with ``__arrow_c_stream__``. The
        results are a list, with ``None`` where one went wrong. Both sides give as many rows.
    columns:
        The columns of that table that hold your inputs, in order, ``"COL:date"`` and ``"COL:decimal2"`` as on the
        command line; those called as the parameters are, else all, if not given.
    role:
        Of a function by name ``"garbler"`` or ``"evaluator"``, one of each.
    output_to:
        Who learns the result.
    signed:
        Whether the outputs of a function by name are read in two's complement.
    protocol:
        ``"wmk17"`` or ``"authenticated"`` against a cheating peer; ``"yao"``, or ``"batch"`` for many rows side
        by side, between sides that follow it;
        ``"auto"`` takes what is fastest over the link. Must match on both sides.
    entry:
        Of a program the function to evaluate, as the command's ``--function``; ``main`` if not given.
    garbler_inputs:
        Of a program so many parameters, the first ones, are the garbler's, and so many inputs of a circuit's file;
        half of them, rounded up, if not given.
    constants:
        Of a program what its constants of the form ``PARTY::NAME`` are worth, such as ``{"SHOP::ROWS": 8}``: a
        number, a truth value, or a literal of the language. Both sides say the same of all three, and write a
        constant alike: ``8`` is not ``"8usize"``.
    bits:
        Of a circuit's file ``"reversed"`` where the highest bit of a value has its first wire, as in the old files of
        AES and SHA. Must match on both sides.
    progress:
        A function that hears of :class:`Progress`, or ``True`` for a bar.
    listen, connect, via, identity, peer, proxy, session:
        How to reach the peer: the parameters of :class:`Session`.

    >>> import tacit, threading
    >>> @tacit.function
    ... def richer(ours: tacit.u64, theirs: tacit.u64):
    ...     return ours > theirs
    >>> them = threading.Thread(target=tacit.evaluate, args=(richer, {"theirs": 80_000}),
    ...     kwargs=dict(listen="127.0.0.1:7714"))
    >>> them.start()
    >>> tacit.evaluate(richer, {"ours": 95_000}, connect="127.0.0.1:7714").result
    True
    >>> them.join()
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.evaluate(
        function,
        inputs,
        rows=rows,
        columns=columns,
        role=role,
        output_to=output_to,
        signed=signed,
        protocol=protocol,
        entry=entry,
        garbler_inputs=garbler_inputs,
        constants=constants,
        bits=bits,
        progress=progress,
    )


def ot(
    n: int | None = None,
    *,
    role: Literal["sender", "receiver"],
    kind: Literal["cot", "rot", "ot"] | None = None,
    messages: tuple[Any, Any] | None = None,
    choices: Any = None,
    max_message: int = 1 << 20,
    of: int | None = None,
    protocol: str | None = None,
    progress: Listener = None,
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Transfers:
    """`n` oblivious transfers as NumPy arrays.

    Random ones (``"rot"``, the default): the sender has ``m0`` and ``m1`` (``uint64[n, 2]``), the receiver bits ``u``
    (``uint8[n]``) and ``m``, which is the message of that bit. Correlated ones (``"cot"``): the sender has ``delta``
    and ``v``, the receiver ``u`` and ``w``, with w = v ⊕ u·delta.

    Chosen ones (``"ot"``, the kind where one of these is given): the sender's `messages` are a pair of two lists of
    ``str`` or of ``bytes``, or of two arrays, ``uint64[n, 2]`` or ``uint8[n, bytes]``; the receiver's `choices` n bits.
    What a side does not give is drawn at random. The receiver's ``m`` is as the sender's messages are (lists come as
    an array of objects), of at most `max_message` bytes each; it learns how long the longest is. The count is theirs.
    Do not send the same messages again after a run that failed: the receiver may choose anew.

    With `of`, 2, 4, 16 or 256, each random transfer has that many messages: the sender's ``m`` is
    ``uint64[n, of, 2]``, the receiver's ``u`` says which of them its ``m`` is.

        tacit.ot(role="sender", messages=(["no", "left"], ["yes", "right"]), listen=…)
        tacit.ot(role="receiver", choices=[1, 0], connect=…).m  # ["yes", "left"]
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.ot(
        n,
        role=role,
        kind=kind,
        messages=messages,
        choices=choices,
        max_message=max_message,
        of=of,
        protocol=protocol,
        progress=progress,
    )


def vole(
    n: int,
    *,
    role: Literal["sender", "receiver"],
    field: Literal["gf128", "gf4", "gf16", "gf256", "p61", "p128"] = "gf128",
    progress: Listener = None,
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Transfers:
    """`n` correlations w = v + u·delta over a field: the sender has ``delta`` and ``v``, the receiver ``u`` and ``w``.

    ``"gf128"``, GF(2^128): all ``uint64[n, 2]``, bits of the polynomial basis, lowest first. ``"gf4"``, ``"gf16"`` and
    ``"gf256"``: u in that subfield, ``uint8[n]``. Integers modulo 2^61 − 1 (``"p61"``, ``uint64[n]``) or 2^128 − 159
    (``"p128"``, ``uint64[n, 2]``): semi-honest only.
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.vole(n, role=role, field=field, progress=progress)


def triples(
    n: int,
    *,
    kind: Literal["bits", "words", "field"],
    field: Literal["gf128", "p61", "p128"] | None = None,
    protocol: str | None = None,
    progress: Listener = None,
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Transfers:
    """`n` Beaver triples: both sides get random shares ``a`` and ``b``, and shares ``c`` of their product.

    The sum of both sides' ``c`` is the product of the sums of ``a`` and of ``b``: of ``"bits"`` (``uint8[n]``, sums are
    XOR), of ``"words"`` (``uint64[n]``, modulo 2^64) or in a ``"field"``: ``"gf128"`` (the default, ``uint64[n, 2]``),
    ``"p61"`` (``uint64[n]``) or ``"p128"`` (``uint64[n, 2]``).

    Words and fields are semi-honest only. With ``security="malicious"``, the default, bits come with MACs: ``delta``
    (``uint64[2]``), ``mac_a``, ``key_a`` and so on (``uint64[n, 2]``), where ``mac_a`` is the peer's ``key_a``, XORed
    with the peer's ``delta`` where ``a`` is 1.
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.triples(n, kind=kind, field=field, protocol=protocol, progress=progress)
