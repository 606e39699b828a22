"""Rows without a match, all rows with a mark, and tables out of workbooks, folders and databases by ADBC."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

import openpyxl
import polars
import pytest
from parties import free_address, party

import tacit
from tacit.errors import InputError, UsageError

OURS = {"mail": ["Ann@x.org ", "bob@x.org", None, "cleo@x.org", "ann@x.org"], "row": [0, 1, 2, 3, 4]}

GIVES = """
import polars
theirs = polars.DataFrame({"mail": ["ann@x.org", "CLEO@x.org", "dora@x.org"], "city": ["Oslo", None, "Rome"]})
tacit.intersect(theirs, on="mail", listen=address, result="peer", **more)
"""


def test_the_other_rows_and_all_rows_with_a_mark() -> None:
    ours = polars.DataFrame(OURS)
    for more, ask in (({}, {}), ({"reveal": "payload", "give": "city"}, {"reveal": "payload:city"})):
        address = free_address()
        with party(GIVES, address=address, more=more) as peer:
            shared = tacit.intersect(ours, on="mail", connect=address, rest=True, all_rows=True, **ask)
            peer.end()
        assert polars.DataFrame(shared)["row"].to_list() == [0, 3, 4]
        assert polars.DataFrame(shared.rest).to_dict(as_series=False) == {
            "mail": ["bob@x.org", None],
            "row": [1, 2],
        }
        every = polars.DataFrame(shared.all_rows)
        assert every["row"].to_list() == OURS["row"]
        assert every["matched"].to_list() == [True, False, False, True, True]
        if ask:
            assert every.columns == ["mail", "row", "matched", "peer_city"]
            assert every["peer_city"].to_list() == ["Oslo", None, None, None, "Oslo"]
    address = free_address()
    with party(GIVES, address=address, more={}) as peer:
        shared = tacit.intersect(ours, on="mail", connect=address)
        peer.end()
    assert (shared.rest, shared.all_rows) == (None, None)


def test_a_workbook_and_a_folder_are_tables(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["mail", "row"], ["ann@x.org", 7], ["zoe@x.org", 8]):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "1.csv").write_text("mail,row\nann@x.org,7\n")
    (parts / "2.csv").write_text("row,mail\n8,zoe@x.org\n")
    for table, row in (
        (tmp_path / "book.xlsx", 7),
        (f"{tmp_path / 'book.xlsx'}#Sheet!A1:B2", 7),
        (parts, "7"),
    ):
        address = free_address()
        with party(GIVES, address=address, more={}) as peer:
            shared = tacit.intersect(table, on="mail", connect=address)
            peer.end()
        assert polars.DataFrame(shared)["row"].to_list() == [row]


def test_a_database_answers_through_its_driver(tmp_path: Path) -> None:
    driver = pytest.importorskip("adbc_driver_sqlite")
    pytest.importorskip("adbc_driver_manager")
    with sqlite3.connect(tmp_path / "crm.db") as base:
        base.execute("create table people (mail text, row integer)")
        base.execute("insert into people values ('ann@x.org', 7), ('zoe@x.org', 8)")
    place = f"adbc:{driver._driver_path()}?uri={quote(str(tmp_path / 'crm.db'))}"
    address = free_address()
    with party(GIVES, address=address, more={}) as peer:
        shared = tacit.intersect(f"{place}#select * from people order by mail;", on="mail", connect=address)
        peer.end()
    assert polars.DataFrame(shared)["row"].to_list() == [7]
    for wrong, kind in (
        (place, UsageError),
        (f"{place}#select secret from nowhere", InputError),
        ("adbc:adbc_driver_that_is_not_there?password=hunter2#select 1", InputError),
    ):
        with pytest.raises(kind) as refused:
            tacit.check(wrong, on="mail")
        assert "hunter2" not in str(refused.value) and "crm.db" not in str(refused.value)
