"""Questions in SQL about both sides' joined tables."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

from ._jobs import Listener, Offer, Path, Session, Settings, _library, _Passed, _passed
from .errors import UsageError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, unused-ignore]
    import polars

Use: TypeAlias = Literal["join", "filter", "group", "aggregate"]


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


_CELLS: dict[str, Callable[[Any], Any]] = {"decimal": decimal.Decimal, "date": _date}


@dataclass(frozen=True)
class Answer(_Passed):
    """What a question gave: a table of its groups that may be shown.

    ``for row in answer`` has a dictionary for each row; :meth:`to_pandas` and :meth:`to_polars` convert it. Counts and
    sums are integers, sums of decimals and means :class:`decimal.Decimal`, dates :class:`datetime.date`.
    """

    seconds: float
    #: The question in its canonical form.
    question: str
    #: The names of the result's columns.
    columns: tuple[str, ...]
    #: How many distinct keys the peer announced.
    peer_keys: int
    #: What the peer learned of you, in words.
    peer_learned: str
    #: The rows, each a tuple of as many cells as there are columns; ``None`` if only the peer gets the result.
    rows: tuple[tuple[Any, ...], ...] | None = field(default=None)

    def _rows(self) -> tuple[tuple[Any, ...], ...]:
        if self.rows is None:
            raise UsageError("only the peer gets the result of this question")
        return self.rows

    def __len__(self) -> int:
        return len(self._rows())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self._rows())

    def to_pandas(self) -> pandas.DataFrame:
        """The result as a DataFrame of pandas."""
        frame: pandas.DataFrame = _library("pandas", "pandas").DataFrame(
            list(self._rows()), columns=list(self.columns)
        )
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The result as a DataFrame of Polars."""
        frame: polars.DataFrame = _library("polars", "polars").DataFrame(
            list(self._rows()), schema=list(self.columns), orient="row"
        )
        return frame


@dataclass(frozen=True)
class Answered(Answer):
    """What a service answered, and where the record of it lies."""

    #: The run's name, which both sides' logs and records have.
    run: str = ""
    #: The folder of your signed records.
    records: str = ""
    #: Whether both sides have signed the record.
    signed_by_both: bool = False


def _answer(raw: Mapping[str, Any]) -> Answer:
    """The answer out of what the native half gave."""
    return Answer(**_answer_of(raw))


def _answer_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an answer out of what the native half gave."""
    reads = [_CELLS.get(kind) for _, kind in raw["columns"]]

    def cells(row: list[Any]) -> tuple[Any, ...]:
        return tuple(
            cell if read is None or cell is None else read(cell)
            for read, cell in zip(reads, row, strict=True)
        )

    return {
        **_passed(raw),
        "seconds": raw["seconds"],
        "question": raw["question"],
        "columns": tuple(name for name, _ in raw["columns"]),
        "peer_keys": raw["peer_keys"],
        "peer_learned": raw["peer_learned"],
        "rows": None if raw["rows"] is None else tuple(cells(row) for row in raw["rows"]),
    }


def query(
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
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Answer:
    """Asks a question in SQL about your table and the peer's: counts, sums and extremes by group, and nobody sees a row.

    Both sides call it with the same `sql`, each with its own `table` (as for :func:`intersect`). The text calls the
    table of the side that listens ``ours`` and the other one ``theirs``, whoever reads it; `side` says otherwise, and is
    needed with `via`. The language is in the chapter on questions.

    The peer learns how many distinct keys you have, and what `result` gives it. A question that can show a group of fewer
    than `min_group` joined rows is refused: it has ``HAVING COUNT(*) >= n``. `allow` lists what your columns may be used
    for, such as ``{"segment": "group", "cents": ["filter", "aggregate"]}``; without it they may be used as the question
    says. `result_to_owner`, on both sides, lets a side get what is made of its own columns. Of several rows with one key
    that pass your part of WHERE the run refuses all, or takes the first.

    Secure against a peer that follows the protocol: ``security="semi-honest"`` on both sides says that you know.

    Raises :class:`UsageError` for a question that cannot be asked, :class:`InputError` for a table that does not serve,
    :class:`PeerError` where the peer or the link fails.

    >>> import polars, tacit, threading
    >>> sql = "SELECT COUNT(*) AS n, SUM(CLIP(a.paid, 0, 99)) AS sum FROM ours a JOIN theirs b ON a.mail = b.mail"
    >>> shop = polars.DataFrame({"mail": ["ann@x.org", "bob@x.org", "cy@x.org"], "paid": [3, 4, 5]})
    >>> club = polars.DataFrame({"mail": ["bob@x.org", "cy@x.org", "dee@x.org"]})
    >>> both = dict(security="semi-honest", min_group=0)
    >>> theirs = threading.Thread(target=tacit.query, args=(sql, shop),
    ...     kwargs=dict(listen="127.0.0.1:7716", result="peer", **both))
    >>> theirs.start()
    >>> list(tacit.query(sql, club, connect="127.0.0.1:7716", **both))
    [{'n': 2, 'sum': 9}]
    >>> theirs.join()
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.query(
        sql,
        table,
        side=side,
        result=result,
        min_group=min_group,
        allow=allow,
        result_to_owner=result_to_owner,
        duplicates=duplicates,
        max_peer_keys=max_peer_keys,
        null=null,
        max_row_mib=max_row_mib,
        nfc=nfc,
        trim=trim,
        case_fold=case_fold,
        progress=progress,
    )


def ask(
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
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Answered:
    """Asks a service a question in SQL about its table and yours, and runs it if its terms are taken.

    The text calls the service's table ``ours`` and yours ``theirs``. The service offers terms: the question, what it uses
    of either table, what either side will learn, what is left of its budgets. Nothing of your table is told before they
    are taken. Each run leaves a record signed by both sides.

    Parameters
    ----------
    job:
        The job's name in the service's policy.
    table:
        The path of your table; or a table in memory as for :func:`intersect`, with `keep`.
    sql, question, values:
        A text of your own, or the name of one of the service's questions with the values of its parameters, such as
        ``question="by_segment", values={"least": 100}``.
    accept, terms, max_peer_keys, keep, records:
        As for :func:`request`.
    result, min_group, allow, result_to_owner, duplicates, null, max_row_mib, progress:
        As for :func:`query`.
    connect, via, identity, peer, proxy, session:
        How to reach the service: the parameters of :class:`Session`. ``security="semi-honest"`` says that you know that a
        question is secure against a service that follows the protocol.

    Raises :class:`Declined` where `accept` says no, and :class:`PeerError` where the service refuses, with its rule.
    """
    where = Session(connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session)
    return where.ask(
        job,
        table,
        sql=sql,
        question=question,
        values=values,
        accept=accept,
        result=result,
        min_group=min_group,
        allow=allow,
        result_to_owner=result_to_owner,
        max_peer_keys=max_peer_keys,
        terms=terms,
        duplicates=duplicates,
        null=null,
        max_row_mib=max_row_mib,
        keep=keep,
        records=records,
        progress=progress,
    )
