"""Identifiers of two sides against the join of their keys, and as keys of later jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest
from parties import free_address

import tacit


def both(first: Callable[[str], Any], second: Callable[[str], Any]) -> tuple[Any, Any]:
    """What two calls at one address give, or raise; the first listens."""
    address, found = free_address(), {}

    def call(name: str, job: Callable[[str], Any]) -> None:
        try:
            found[name] = job(address)
        except tacit.Error as error:
            found[name] = error

    other = threading.Thread(target=call, args=("first", first))
    other.start()
    call("second", second)
    other.join()
    return found["first"], found["second"]


def linked(ours: Any, theirs: Any, on: Any = None, other: Any = None, **more: Any) -> tuple[Any, Any]:
    more = {"timeout": 60, "wait": 20, **more}
    return both(
        lambda address: tacit.link(ours, on, listen=address, **more),
        lambda address: tacit.link(theirs, other or on, connect=address, **more),
    )


def test_frames_get_a_first_column_that_joins_as_their_keys_do() -> None:
    ours = pandas.DataFrame({"mail": ["Ann@x.org", "bob@x.org", None, "BOB@X.ORG", ""], "n": [1, 2, 3, 4, 5]})
    theirs = polars.DataFrame({"v": [7, 8, 9], "post": ["bob@x.org", "cy@x.org", "ann@x.org"]})
    for security in ("malicious", "semi-honest"):
        first, second = linked(ours, theirs, {"mail": "email"}, {"post": "email"}, security=security)
        assert isinstance(first, tacit.Linked) and isinstance(second, tacit.Linked), (first, second)
        assert first.run == second.run and len(first.run) == 16
        assert (first.peer_keys, second.peer_keys, len(first), len(second)) == (3, 2, 5, 3)
        assert first.peer_learned.startswith("that you have 2 distinct keys; nothing else")
        a, b = first.to_pandas(), second.to_polars()
        assert list(a.columns) == ["link_id", "mail", "n"] and b.columns == ["link_id", "v", "post"]
        assert a["n"].tolist() == [1, 2, 3, 4, 5] and b["v"].to_list() == [7, 8, 9]
        assert all(len(one) == 32 and int(one, 16) >= 0 for one in [*a["link_id"], *b["link_id"]])
        rows = duckdb.sql("select n, v from a join b using (link_id) order by n").fetchall()
        assert rows == [(1, 9), (2, 7), (4, 7)]
        # One for each key, and one for each row without a key.
        assert a["link_id"].nunique() == 4 and a["link_id"][1] == a["link_id"][3]
        assert [row["link_id"] for row in first] == a["link_id"].tolist()
        assert pyarrow.table(first).num_rows == 5
    again, _ = linked(ours, theirs, {"mail": "email"}, {"post": "email"})
    assert not set(again.to_pandas()["link_id"]) & set(a["link_id"])


def test_lists_and_composite_keys() -> None:
    first, second = linked(["ann", "bob", "ann"], ["bob", "cy"])
    a, b = first.to_list(), second.to_list()
    assert a[0] == a[2] != a[1] == b[0] and b[1] not in a
    ours = polars.DataFrame({"first": ["Ann", "Bob"], "last": ["Lee", "Ray"]})
    theirs = polars.DataFrame({"x": ["ann", "ann"], "y": ["ray", "lee"]})
    first, second = linked(ours, theirs, ["first", "last"], ["x", "y"], id_column="person")
    a, b = first.to_polars()["person"].to_list(), second.to_polars()["person"].to_list()
    assert a[0] == b[1] and len({*a, *b}) == 3
    with pytest.raises(tacit.UsageError):
        first.to_list()


def test_identifiers_are_keys_of_later_jobs() -> None:
    ours = polars.DataFrame({"k": [f"u{i}" for i in range(30)], "cents": range(30)})
    theirs = polars.DataFrame({"k": [f"u{i}" for i in range(10, 50)]})
    first, second = linked(ours, theirs, "k")
    a, b = first.to_polars(), second.to_polars()
    sql = "SELECT COUNT(*) AS n, SUM(CLIP(a.cents, 0, 99)) AS sum FROM ours a JOIN theirs b ON a.link_id = b.link_id"
    way: dict[str, Any] = {"security": "semi-honest", "min_group": 0}
    _, answer = both(
        lambda address: tacit.query(sql, a, listen=address, result="peer", **way),
        lambda address: tacit.query(sql, b, connect=address, **way),
    )
    assert list(answer) == [{"n": 20, "sum": sum(range(10, 30))}]
    _, found = both(
        lambda address: tacit.intersect(a, "link_id", listen=address, result="peer"),
        lambda address: tacit.intersect(b, "link_id", connect=address),
    )
    assert sorted(row["k"] for row in found) == sorted(f"u{i}" for i in range(10, 30))


def test_what_cannot_be_linked_is_said_before_anybody_is_called() -> None:
    table = polars.DataFrame({"name": ["Ann"], "link_id": [1]})
    for more, words in [
        ({}, "a column link_id already"),
        ({"id_column": " "}, "needs a name"),
        ({"id_column": "id", "on": {"name": "name~1"}}, "name~1 makes several keys"),
        ({"id_column": "id", "on": "nothing"}, "no column nothing"),
    ]:
        on = more.pop("on", "name")
        with pytest.raises(tacit.UsageError, match=words):
            tacit.link(table, on, listen="127.0.0.1:1", **more)
    # Keys that differ, and more than this side takes.
    small = polars.DataFrame({"name": ["Ann", "Bob"]})
    first, second = linked(small, small, "name", {"name": "name"})
    assert isinstance(first, tacit.Mismatch) and isinstance(second, tacit.Mismatch)
    first, second = linked(small, small, "name", max_peer_keys=1)
    assert isinstance(first, tacit.PeerError) and isinstance(second, tacit.PeerError)
