"""Types for near matches, between two processes and with a service."""

from __future__ import annotations

import polars
import pytest
from parties import free_address, party

import tacit
from tacit.errors import Mismatch, UsageError

OURS = {
    "last": ["Meyer", "Schmidt", "Li", "Ito", None, "Rossi"],
    "born": ["1975-03-12", "1980-01-31", "1990-05-05", "1961-07-02", "1961-07-02", "2001-11-30"],
    "row": [0, 1, 2, 3, 4, 5],
}
ON = {"last": "name~1", "born": "date~1"}

THEIRS = """
import polars
theirs = polars.DataFrame({
    "name": ["MEIER", "Schimdt", "Le", "Tio", "Maier", "Rosi"],
    "tag": ["3.12.1975", "31.1.1990", "5.5.1990", "1.7.1961", "12.3.1975", "31.11.2001"],
    "ort": ["Oslo", "Rome", "Bern", "Paris", "Ulm", "Graz"],
})
found = tacit.intersect(theirs, on={"name": "name~1", "tag": "date:DMY~1"}, listen=address, **more)
rows = [] if found.rows is None else polars.DataFrame(found)["ort"].to_list()
tell([found.peer_keys, found.matching_rows, found.peer_learned, rows])
"""


def ours() -> polars.DataFrame:
    return polars.DataFrame(OURS)


def test_both_sides_get_the_rows_with_a_common_variant() -> None:
    address = free_address()
    with party(THEIRS, address=address, more={"result": "both"}) as peer:
        found = tacit.intersect(ours(), ON, connect=address, result="both", rest=True, all_rows=True)
        [said] = peer.end()
    assert polars.DataFrame(found)["row"].to_list() == [0, 1, 3]
    assert polars.DataFrame(found.rest)["row"].to_list() == [2, 4, 5]
    assert polars.DataFrame(found.all_rows)["matched"].to_list() == [True, True, False, True, False, False]
    own = 6 * 9 + 8 * 8 + 8 + 4 * 9 + 5 * 8
    assert found.matching_rows == 3
    assert found.identifiers == (tacit.Identifier("last+born", 5, own, found.matches, 3),)
    assert "for each variant of its own rows whether it is among them" in found.peer_learned
    assert isinstance(said, list)
    assert said[:2] == [own, 3] and said[3] == ["Oslo", "Rome", "Paris"], said


def test_columns_come_by_the_first_common_variant() -> None:
    address = free_address()
    more = {"result": "peer", "reveal": "payload", "give": "ort", "duplicates": "all"}
    with party(THEIRS, address=address, more=more) as peer:
        found = tacit.intersect(ours(), ON, connect=address, reveal="payload:ort")
        peer.end()
    assert polars.DataFrame(found)["peer_ort"].to_list() == ["Oslo", "Rome", "Paris"]


def test_a_check_counts_variants() -> None:
    seen = tacit.check(ours(), {"last": "name~1"})
    assert (seen.rows, seen.keys, seen.rows_without_key) == (6, 6 + 8 + 1 + 4 + 5, 1)
    assert seen.identifiers == (tacit.Identifier("last", 5, 24),)


def test_what_does_not_go_together_is_refused() -> None:
    address = free_address()
    with party(THEIRS.replace("tell(", "#"), address=address, more={"result": "peer"}) as peer:
        with pytest.raises(Mismatch, match="name~1"):
            tacit.intersect(ours(), {"last": "name", "born": "date"}, connect=address)
        with pytest.raises(AssertionError, match="name~1"):
            peer.end()
    for words, on, arguments in (
        ("counts once for each variant", ON, {"reveal": "count"}),
        ("at least 10000 variants", {"last": "int~99", "born": "int~99"}, {}),
        ("`int~100` is not a key type", {"last": "int~100"}, {}),
    ):
        with pytest.raises(UsageError, match=words):
            tacit.intersect(ours(), on, connect=free_address(), **arguments)
