"""Matching by any of several identifiers, between two processes and with a service."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest
from parties import free_address, party, service

import tacit
from tacit.errors import Mismatch, UsageError

OURS = {
    "mail": ["Ann@x.org", None, "cleo@x.org", None, "ann@x.org", "none"],
    "tel": ["06 12345678", "0612345679", None, None, "0612345680", "12"],
    "who": ["Müller", "Rossi", "Sørensen", None, "Ito", "Only"],
    "born": ["1980-02-29", "1975-07-01", "1990-11-11", None, "2001-01-01", "1999-09-09"],
    "row": [0, 1, 2, 3, 4, 5],
}
ON = {"mail": "email"}
OR_KEYS = [{"tel": "phone:NL"}, {"who": "name", "born": "date"}]

THEIRS = """
import polars
theirs = polars.DataFrame({
    "adresse": ["ann@x.org", "zed@x.org", "other@x.org", None],
    "fon": [None, "+31612345679", None, "+31 6 12345678"],
    "name": ["x", "Rossi", "SORENSEN", None],
    "tag": ["1980-01-01", "1975-07-01", "1990-11-11", None],
    "ort": ["Oslo", "Rome", "Bern", "Paris"],
})
found = tacit.intersect(
    theirs, on={"adresse": "email"}, or_keys=[{"fon": "phone"}, {"name": "name", "tag": "date"}],
    listen=address, **more,
)
tell([found.matches, found.matching_rows, found.peer_learned, [i.rows_matched_by for i in found.identifiers]])
"""


def ours() -> polars.DataFrame:
    return polars.DataFrame(OURS)


def test_both_sides_get_their_rows_and_by_what_they_match() -> None:
    address = free_address()
    with party(THEIRS, address=address, more={"result": "both"}) as peer:
        found = tacit.intersect(
            ours(),
            ON,
            or_keys=OR_KEYS,
            matched_by="by",
            connect=address,
            result="both",
            rest=True,
            all_rows=True,
        )
        [said] = peer.end()
    assert isinstance(said, list)
    rows = polars.DataFrame(found)
    assert rows["row"].to_list() == [0, 1, 2, 4]
    assert rows["by"].to_list() == ["mail", "tel", "who+born", "mail"]
    assert polars.DataFrame(found.rest)["row"].to_list() == [3, 5]
    every = polars.DataFrame(found.all_rows)
    assert every.columns == [*OURS, "matched", "by"]
    assert every["by"].to_list() == ["mail", "tel", "who+born", None, "mail", None]
    assert (found.matches, found.matching_rows, found.peer_keys) == (5, 4, 8)
    assert found.identifiers == (
        tacit.Identifier("mail", 3, 2, 1, 2),
        tacit.Identifier("tel", 3, 3, 2, 1),
        tacit.Identifier("who+born", 5, 5, 2, 1),
    )
    assert "for each of its own identifiers whether it is among them" in found.peer_learned
    assert said[:2] == [5, 4] and said[3] == [1, 2, 1], said


def test_columns_come_by_the_first_common_identifier() -> None:
    address = free_address()
    with party(THEIRS, address=address, more={"result": "peer", "reveal": "payload", "give": "ort"}) as peer:
        found = tacit.intersect(
            ours(), ON, or_keys=OR_KEYS, matched_by="by", connect=address, reveal="payload:ort"
        )
        peer.end()
    rows = polars.DataFrame(found)
    assert rows.columns == [*OURS, "by", "peer_ort"]
    assert rows["peer_ort"].to_list() == ["Oslo", "Rome", "Bern", "Oslo"]


def test_a_check_counts_each_identifier() -> None:
    seen = tacit.check(ours(), ON, or_keys=OR_KEYS)
    assert (seen.rows, seen.keys, seen.rows_without_key, seen.duplicate_rows) == (6, 10, 1, 1)
    assert [(one.name, one.rows, one.distinct) for one in seen.identifiers] == [
        ("mail", 3, 2),
        ("tel", 3, 3),
        ("who+born", 5, 5),
    ]
    assert tacit.check(ours(), ON).identifiers == ()


def test_what_does_not_go_together_is_refused() -> None:
    address = free_address()
    with party(THEIRS.replace("tell(", "#"), address=address, more={"result": "peer"}) as peer:
        with pytest.raises(Mismatch, match="identifiers"):
            tacit.intersect(ours(), ON, or_keys=OR_KEYS[:1], connect=address)
        with pytest.raises(AssertionError, match="identifiers"):
            peer.end()
    for words, arguments in (
        ("3 identifiers", {"or_keys": OR_KEYS, "reveal": "count"}),
        ("matched_by: goes with or_keys", {"matched_by": "by"}),
        ("matched_by: the table has a column row", {"or_keys": OR_KEYS, "matched_by": "row"}),
        ("or_keys: give a list", {"or_keys": "tel"}),
        ("or_keys: each identifier has one column", {"or_keys": [[]]}),
        ("no column fax", {"or_keys": ["fax"]}),
        ("at most 16", {"or_keys": ["tel"] * 16}),
    ):
        with pytest.raises(UsageError, match=words):
            tacit.intersect(ours(), ON, connect=free_address(), **arguments)
    with pytest.raises(UsageError, match="name the first one with on"):
        tacit.intersect(ours(), or_keys=OR_KEYS, connect=free_address())


POLICY = """
key = ["email:email"]
or_keys = ["fon:phone:NL", "name:name,born:date"]
rows_in_total = 1000
[jobs.match]
source = "customers"
allow = ["bob"]
reveal = ["rows"]
result = ["peer"]
max_peer_keys = 10
runs_a_day = 100
"""


def test_a_service_takes_the_same_identifiers(tmp_path: Path) -> None:
    (tmp_path / "customers.csv").write_text(
        "email,fon,name,born\nann@x.org,,,\n,0612345679,Rossi,1975-07-01\n,,sorensen,1990-11-11\n"
    )
    with service(tmp_path, POLICY) as (session, _):

        def ask(number: int, **more: object) -> tacit.Granted:
            keep = tmp_path / f"kept{number}.arrow"
            return session.request("match", ours(), ON, accept=True, keep=keep, **more)  # type: ignore[arg-type]

        found = ask(1, or_keys=OR_KEYS, matched_by="by")
        assert polars.DataFrame(found)["by"].to_list() == ["mail", "tel", "who+born", "mail"]
        assert (found.matches, found.matching_rows, found.signed_by_both) == (4, 4, True)
        with pytest.raises(UsageError, match="the service matches by 3 identifiers"):
            ask(2, or_keys=OR_KEYS[:1])
