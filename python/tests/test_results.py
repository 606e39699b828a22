"""What comes back: conversions of a result, and why rows have no key."""

from __future__ import annotations

import threading

import pandas
import polars
import pytest
from parties import free_address

import tacit


def shared(table: object, on: object, theirs: list[str]) -> tacit.Intersection:
    """The result of an intersection with a list in another thread."""
    address = free_address()
    peer = polars.DataFrame({"k": theirs})
    arguments = dict(on="k", listen=address, result="peer")
    thread = threading.Thread(target=tacit.intersect, args=(peer,), kwargs=arguments)
    thread.start()
    done = tacit.intersect(table, on, connect=address)
    thread.join()
    return done


def test_results_convert() -> None:
    table = polars.DataFrame({"mail": ["ann", "bob", "cas"], "age": [30, 40, 50]})
    done = shared(table, "mail", ["bob", "cas"])
    assert done.to_polars().equals(table[1:])
    frame = done.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["age"].tolist() == [40, 50]
    # pandas' own constructor takes what can be walked through.
    assert pandas.DataFrame(done).equals(frame.astype(pandas.DataFrame(done).dtypes))
    assert list(done) == [{"mail": "bob", "age": 40}, {"mail": "cas", "age": 50}]


def test_a_list_is_walked_through_as_strings() -> None:
    address = free_address()
    thread = threading.Thread(
        target=tacit.intersect, args=(["ann", "bob"],), kwargs=dict(listen=address, result="peer")
    )
    thread.start()
    done = tacit.intersect(["bob", "cleo"], connect=address)
    thread.join()
    assert list(done) == done.to_list() == ["bob"]


def test_a_missing_library_is_named(monkeypatch) -> None:
    done = shared(polars.DataFrame({"mail": ["ann"]}), "mail", ["ann"])
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(tacit.UsageError, match="pip install"):
        done.to_pandas()


def test_a_check_says_why_rows_have_no_key() -> None:
    mails = ["ann@x.org", "bob", "", "eve@", None, "NULL"]
    table = polars.DataFrame({"mail": mails, "born": ["1980-01-31"] * 5 + ["1.2.1980"]})
    found = tacit.check(table, {"mail": "email"})
    assert [(one.column, one.type, one.rows) for one in found.reasons] == [
        ("mail", "email", 3),
        ("mail", "email", 2),
    ]
    assert [one.reason for one in found.reasons] == ["not a valid e-mail address", "empty"]
    assert found.rows_without_key == sum(one.rows for one in found.reasons)
    [reason] = tacit.check(table, {"born": "date"}).reasons
    assert reason.reason == "ambiguous: give date:DMY or date:MDY"
    hints = tacit.check(table, "mail").hints
    assert any('null=["NULL"]' in hint for hint in hints), hints
    hints = tacit.check(polars.DataFrame({"m": ["a@x.org", "b@x.org", "c@x.org"]}), "m").hints
    assert any('on={"m": "email"}' in hint for hint in hints), hints
