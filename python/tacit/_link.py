"""Identifiers that match on both sides where keys do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from ._jobs import Listener, On, Path, Session, Settings, _library, _Passed, _passed
from .errors import UsageError

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, unused-ignore]
    import polars


@dataclass(frozen=True)
class Linked(_Passed):
    """Your table with a first column of identifiers.

    It is an Arrow stream itself: ``polars.DataFrame(result)``, ``pyarrow.table(result)`` and ``duckdb.sql("from result")``
    take it without a copy. :meth:`to_pandas` and :meth:`to_polars` convert it, and ``for row in result`` has a dictionary
    for each row.
    """

    seconds: float
    #: The number of the run, the same on both sides: identifiers of one run belong together.
    run: str
    #: How many distinct keys the peer announced.
    peer_keys: int
    #: What the peer learned of you, in words.
    peer_learned: str
    #: All of your rows, as an object with ``__arrow_c_stream__``, in their order.
    rows: Any = field(repr=False)
    _values: bool = field(default=False, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Your rows as a DataFrame of pandas, which needs pyarrow for it."""
        frame: pandas.DataFrame = _library("pyarrow", "pandas").table(self).to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Your rows as a DataFrame of Polars."""
        frame: polars.DataFrame = _library("polars", "polars").DataFrame(self)
        return frame

    def __iter__(self) -> Iterator[dict[str, Any]]:
        try:
            return iter(self.to_polars().iter_rows(named=True))
        except UsageError:
            return iter(_library("pyarrow", "polars or pyarrow").table(self).to_pylist())

    def to_list(self) -> list[str]:
        """The identifiers of a list of strings, in its order; a table's rows are an Arrow stream."""
        if not self._values:
            raise UsageError("these are rows of a table: use to_pandas() or to_polars()")
        identifiers: list[str] = self.rows.strings()
        return identifiers


def _linked(raw: Mapping[str, Any], values: bool) -> Linked:
    """What a run gave out of what the native half gave."""
    return Linked(
        **_passed(raw),
        seconds=raw["seconds"],
        run=raw["run"],
        peer_keys=raw["peer_keys"],
        peer_learned=raw["peer_learned"],
        rows=raw["rows"],
        _values=values,
    )


def link(
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
    listen: str | None = None,
    connect: str | None = None,
    via: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    proxy: str | None = None,
    **session: Unpack[Settings],
) -> Linked:
    """Gives your rows and the peer's random identifiers that match where keys do, and nobody learns which do.

    Both sides call it, and each gets its own table with a first column `id_column`: 32 digits of base 16, one for each
    key, the same on both sides. A row without a key gets one that no other row has. Identifiers are new in every run; those
    of one run are keys for later jobs, such as ``tacit.query`` with ``ON a.link_id = b.link_id``. The peer learns how many
    distinct keys you have, and nothing else; a peer that cheats is caught (``security="malicious"``, the default). Anyone
    who sees both sides' identifiers can tell which rows match.

    `table`, `on` and the parameters behind `max_peer_keys` are those of :func:`intersect`. A row has one key of exact
    types: types for near matches are refused.

    Raises :class:`UsageError` for a key or a name that does not serve, :class:`InputError` for a table that does not,
    :class:`PeerError` where the peer or the link fails.

    >>> import polars, tacit, threading
    >>> shop = polars.DataFrame({"mail": ["ann@x.org", "bob@x.org"], "paid": [3, 4]})
    >>> club = polars.DataFrame({"mail": ["Bob@x.org", "cy@x.org"], "since": [2019, 2024]})
    >>> theirs = []
    >>> peer = threading.Thread(target=lambda: theirs.append(tacit.link(club, {"mail": "email"}, listen="127.0.0.1:7718")))
    >>> peer.start()
    >>> ours = tacit.link(shop, {"mail": "email"}, connect="127.0.0.1:7718").to_polars()
    >>> peer.join()
    >>> ours.join(theirs[0].to_polars(), on="link_id").select("mail", "paid", "since").rows()
    [('bob@x.org', 4, 2019)]
    """
    where = Session(
        listen=listen, connect=connect, via=via, identity=identity, peer=peer, proxy=proxy, **session
    )
    return where.link(
        table,
        on,
        id_column=id_column,
        max_peer_keys=max_peer_keys,
        null=null,
        max_row_mib=max_row_mib,
        nfc=nfc,
        trim=trim,
        case_fold=case_fold,
        progress=progress,
    )
