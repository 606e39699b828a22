"""Intersections with the libraries of tables that people use."""

from __future__ import annotations

import datetime
import decimal
import time

import duckdb
import pandas
import polars
import pyarrow
import pytest
from parties import free_address, party

import tacit

OURS = ["Ann@x.org ", "bob@x.org", None, "", "cleo@x.org", "bob@x.org"]
THEIRS = ["ann@x.org", "CLEO@x.org", "dora@x.org"]

PEER = """
result = tacit.intersect(keys, listen=address, result="peer")
tell([result.peer_keys, result.matches, result.peer_learned])
"""


def tables() -> dict[str, object]:
    columns = {"mail": OURS, "row": list(range(len(OURS)))}
    frame = polars.DataFrame(columns)
    return {
        "pandas": pandas.DataFrame(columns),
        "polars": frame,
        "pyarrow": pyarrow.table(columns),
        "batches": pyarrow.RecordBatchReader.from_batches(
            pyarrow.table(columns).schema, pyarrow.table(columns).to_batches(max_chunksize=2)
        ),
        "duckdb": duckdb.sql("select * from frame"),
    }


@pytest.mark.parametrize("kind", list(tables()))
def test_rows_of_any_table_go_in_and_come_out(kind: str) -> None:
    address = free_address()
    with party(PEER, keys=THEIRS, address=address) as peer:
        result = tacit.intersect(tables()[kind], on="mail", connect=address)
        ((keys, matches, learned),) = peer.end()
    assert (keys, matches) == (3, None)
    assert learned.startswith("that you have 3 distinct keys, and which of its own keys are among them")
    assert (result.matches, result.peer_keys, len(result)) == (2, 3, 2)
    assert polars.DataFrame(result)["row"].to_list() == [0, 4]
    assert pyarrow.table(result)["mail"].to_pylist() == ["Ann@x.org ", "cleo@x.org"]
    assert duckdb.sql("select sum(row) from result").fetchall() == [(4,)]
    assert list(pandas.DataFrame.from_arrow(result)["row"]) == [0, 4]


def test_a_list_of_strings_needs_no_library() -> None:
    address = free_address()
    with party(PEER, keys=THEIRS, address=address) as peer:
        result = tacit.intersect(["ann@x.org", "zoe@x.org"], connect=address)
        peer.end()
    assert result.to_list() == ["ann@x.org"]


def test_both_may_learn_and_a_side_without_a_result_says_so() -> None:
    address = free_address()
    code = """
    result = tacit.intersect(keys, listen=address, result="both")
    tell(result.to_list())
    """
    with party(code, keys=THEIRS, address=address) as peer:
        result = tacit.intersect(["cleo@x.org"], connect=address, result="both")
        assert peer.end() == [["CLEO@x.org"]]
    assert result.to_list() == ["cleo@x.org"]
    with party("tell(tacit.intersect(['a'], listen=address).matches)", address=address) as peer:
        nothing = tacit.intersect(["a"], connect=address, result="peer")
        assert peer.end() == [1]
    assert nothing.matches is None
    with pytest.raises(tacit.UsageError, match="only the peer gets a result"):
        len(nothing)


def test_columns_of_every_exact_type_are_keys_and_floats_are_none() -> None:
    table = pyarrow.table(
        {
            "whole": pyarrow.array([1, 2**62, None], pyarrow.int64()),
            "day": [datetime.date(2024, 2, 29), datetime.date(1999, 1, 1), None],
            "price": [decimal.Decimal("1.10"), decimal.Decimal("2.00"), None],
            "kind": pyarrow.array(["a", "b", "a"]).dictionary_encode(),
            "yes": [True, False, None],
            "number": [1.0, 2.0, 3.0],
        }
    )
    for name in ["whole", "day", "price", "yes"]:
        assert tacit.check(table, on=name).keys == 2, name
        assert tacit.check(table, on=name).rows_without_key == 1
    assert tacit.check(table, on="kind").duplicate_rows == 1
    assert tacit.check(table, on=["kind", "whole"]).keys == 2
    with pytest.raises(tacit.InputError, match="floating-point"):
        tacit.check(table, on="number")


def test_midnights_of_pandas_and_polars_are_dates_and_other_moments_are_refused() -> None:
    days = ["2024-02-29", "1999-01-01", None]
    frames = {
        "pandas": pandas.DataFrame({"day": pandas.to_datetime(pandas.Series(days))}),
        "polars": polars.DataFrame({"day": days}).with_columns(polars.col("day").str.to_datetime("%Y-%m-%d")),
    }
    for name, frame in frames.items():
        counted = tacit.check(frame, on={"day": "date"})
        assert (counted.keys, counted.rows_without_key) == (2, 1), name
        with pytest.raises(tacit.InputError, match="timestamps; give it the type date"):
            tacit.check(frame, on="day")
    noon = pandas.DataFrame({"day": pandas.to_datetime(["2024-02-29 12:00", "2024-02-29 00:00"])})
    counted = tacit.check(noon, on={"day": "date"})
    assert (counted.keys, counted.rows_without_key) == (1, 1)
    with pytest.raises(tacit.InputError, match="timestamps"):
        tacit.check(noon.assign(day=noon["day"].dt.tz_localize("UTC")), on={"day": "date"})


def test_decimals_are_the_keys_that_the_command_makes_of_them() -> None:
    """Zeros at the end of a fraction say nothing, in files and in frames."""
    address = free_address()
    table = pyarrow.table({"price": [decimal.Decimal("1.10"), decimal.Decimal("2.00")]})
    code = """
    tell(len(tacit.intersect(["1.1", "2"], listen=address)))
    """
    with party(code, address=address) as peer:
        tacit.intersect(table, on="price", connect=address, result="peer")
        assert peer.end() == [2]


def test_columns_have_types() -> None:
    table = pyarrow.table(
        {
            "mail": ["Ann@Example.org", "ann@ex\u200bample.org", "no address", "bob@example.org"],
            "tel": ["06 12345678", "+31 (0)6-12345678", "0612345678", "call me"],
        }
    )
    assert tacit.check(table, on=["mail", "tel"]).keys == 4
    typed = tacit.check(table, on={"mail": "email", "tel": "phone:NL"})
    assert (typed.keys, typed.rows_without_key, typed.duplicate_rows) == (1, 2, 1)
    with pytest.raises(tacit.UsageError, match="did you mean `email`"):
        tacit.check(table, on={"mail": "e-mail"})


def test_what_the_command_takes_and_what_python_takes_are_the_same_keys() -> None:
    """A whole number, a date and text match what a CSV file says of them."""
    address = free_address()
    table = pyarrow.table({"n": [7, 8], "d": [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]})
    code = """
    import polars
    table = polars.DataFrame({"a": ["7", "9"], "b": ["2024-02-29", "2024-03-01"]})
    tell(len(tacit.intersect(table, on=["a", "b"], listen=address)))
    """
    with party(code, address=address) as peer:
        tacit.intersect(table, on=["n", "d"], connect=address, result="peer")
        assert peer.end() == [1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(table=[1, 2]), "not a table"),
        (dict(table="people.csv"), "on: name the column"),
        (dict(table=["a"], on="x"), "no columns"),
        (dict(table=polars.DataFrame({"a": ["x"]})), "on: name the column"),
        (dict(table=polars.DataFrame({"a": ["x"]}), on="b"), "no column b; the table has a"),
        (dict(table=["a"], result="all"), "result is"),
        (dict(table=["a"], protocol="magic"), "protocol is one of"),
    ],
)
def test_wrong_uses_are_named_before_anything_is_sent(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(tacit.UsageError, match=says) as caught:
        tacit.intersect(**arguments, connect="127.0.0.1:9")
    assert "--" not in str(caught.value)


def test_a_session_needs_one_address_and_both_keys() -> None:
    for wrong in [{}, {"listen": "127.0.0.1:0", "connect": "127.0.0.1:1"}]:
        with pytest.raises(tacit.UsageError, match="one of listen="):
            tacit.Session(**wrong)
    with pytest.raises(tacit.UsageError, match="beyond this machine"):
        tacit.Session(connect="192.0.2.1:7700")
    with pytest.raises(tacit.UsageError, match="together with peer="):
        tacit.Session(connect="127.0.0.1:1", identity="a.key")


def test_keys_name_both_parties(tmp_path) -> None:
    ours, theirs, other = (tacit.keygen(tmp_path / f"{name}.key") for name in ["ours", "theirs", "other"])
    assert tacit.fingerprint(ours.public) == ours.fingerprint
    with pytest.raises(tacit.InputError, match="exists already"):
        tacit.keygen(tmp_path / "ours.key")
    address = free_address()
    code = "tell(len(tacit.intersect(['a', 'b'], listen=address, identity=key, peer=peer)))"
    with party(code, address=address, key=theirs.private, peer=ours.public) as peer:
        tacit.intersect(["b"], connect=address, identity=ours.private, peer=theirs.public, result="peer")
        assert peer.end() == [1]
    with party(code, address=address, key=theirs.private, peer=ours.public):
        with pytest.raises(tacit.PeerError, match="fingerprint|key"):
            tacit.intersect(["b"], connect=address, identity=ours.private, peer=other.public, result="peer")


def test_differences_are_named_on_both_sides() -> None:
    address = free_address()
    code = """
    try:
        tacit.intersect(["a"], listen=address, result="peer", case_fold=False, protocol="paxos")
    except tacit.Mismatch as error:
        tell(error.differences)
    """
    with party(code, address=address) as peer:
        with pytest.raises(tacit.Mismatch, match="protocol .yours auto, peer's paxos.") as caught:
            tacit.intersect(["a"], connect=address)
        theirs = peer.end()[0]
    ours = caught.value.differences
    assert ("protocol", "auto", "paxos") in ours
    assert sorted((name, b, a) for name, a, b in ours) == sorted(tuple(one) for one in theirs)
    assert caught.value.blame == "peer"


def test_progress_is_told_and_never_done_before_the_end() -> None:
    address = free_address()
    keys = [str(i) for i in range(200_000)]
    steps: list[tacit.Progress] = []
    with party(
        "tacit.intersect([str(i) for i in range(200_000)], listen=address, result='peer')", address=address
    ):
        tacit.intersect(keys, connect=address, progress=steps.append)
    assert len(steps) >= 2
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions) and fractions[-1] <= 0.99
    assert steps[-1].bytes > 0 and all(step.phase for step in steps)


def test_a_listener_that_raises_ends_the_job() -> None:
    address = free_address()

    def refuse(_: tacit.Progress) -> None:
        raise RuntimeError("enough")

    code = """
    try:
        tacit.intersect([str(i) for i in range(300_000)], listen=address, result="peer")
    except tacit.PeerError as error:
        tell(any(words in str(error) for words in ("closed", "was lost", "was interrupted")))
    """
    with party(code, address=address) as peer:
        with pytest.raises(RuntimeError, match="enough"):
            tacit.intersect([str(i) for i in range(300_000)], connect=address, progress=refuse)
        assert peer.end() == [True]


def test_meeting_and_waiting_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    address = free_address()
    caplog.set_level("DEBUG", logger="tacit")
    with party("tacit.intersect(['a'], listen=address, result='peer')", address=address):
        tacit.intersect(["a"], connect=address)
    assert any("met the peer" in message for message in caplog.messages)
    start = time.monotonic()
    with pytest.raises(tacit.PeerError, match="cannot connect"):
        tacit.intersect(["a"], connect=free_address(), wait=0.6)
    assert time.monotonic() - start < 5
    assert any("waiting for the peer" in message for message in caplog.messages)


GIVES = """
import polars
table = polars.DataFrame({"mail": keys, "city": ["Oslo", None, "Rome", "Bern"], "amount": [5, 7, None, -2]})
said = tacit.intersect(table, on="mail", listen=address, result="peer", **arguments)
tell([said.value, said.matches])
"""
HELD = ["ann@x.org", "cleo@x.org", "dora@x.org", "Ann@x.org"]


def reveal(ours: dict[str, object], theirs: dict[str, object]) -> tacit.Intersection:
    address = free_address()
    with party(GIVES, keys=HELD, address=address, arguments=theirs) as peer:
        result = tacit.intersect(tables()["polars"], on="mail", connect=address, **ours)
        assert peer.end() == [[None, None]]
    return result


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.arrow"])
def test_files_are_tables(name: str, tmp_path) -> None:
    frame = polars.DataFrame({"mail": OURS, "row": list(range(len(OURS)))})
    path = tmp_path / name
    writers = {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}
    writers[name.split(".")[1]](path)
    assert tacit.check(path, on="mail").keys == 3
    address = free_address()
    with party(PEER, keys=THEIRS, address=address) as peer:
        result = tacit.intersect(path, on="mail", connect=address)
        peer.end()
    assert [int(row) for row in polars.DataFrame(result)["row"]] == [0, 4]
    with pytest.raises(tacit.InputError, match="the file has 2 columns"):
        tacit.check(path, on="tel")
    with pytest.raises(tacit.InputError, match="nowhere"):
        tacit.check(tmp_path / "nowhere.csv", on="mail")


def test_columns_of_the_peers_come_behind_ours() -> None:
    result = reveal(
        {"reveal": "payload:city,amount"},
        {"reveal": "payload", "give": ["city", "amount"], "duplicates": "all"},
    )
    frame = polars.DataFrame(result)
    assert result.matches == 2
    rows = frame.select("row", "peer_city", "peer_amount").sort("row", "peer_amount").rows()
    assert rows == [(0, "Bern", "-2"), (0, "Oslo", "5"), (4, None, "7")]


@pytest.mark.parametrize(
    ("kind", "value", "counted"),
    [("count", 2, None), ("sum:amount", 10, None), ("mean:amount", 10 / 3, 3), ("max:amount", 7, None)],
)
def test_numbers_over_the_common_keys(kind: str, value: float, counted: int | None) -> None:
    honest = {"reveal": kind, "security": "semi-honest"}
    theirs = honest if kind == "count" else honest | {"give": "amount"}
    result = reveal(honest, theirs)
    assert (result.value, result.counted, result.withheld, result.rows) == (value, counted, False, None)
    held = reveal(honest | {"min_matches": 3}, theirs | {"min_matches": 3})
    assert (held.value, held.withheld) == (None, True)


@pytest.mark.parametrize(
    ("kind", "value", "counted"), [("count", 2, None), ("sum:amount", 10, None), ("mean:amount", 10 / 3, 3)]
)
def test_numbers_go_against_a_malicious_peer(kind: str, value: float, counted: int | None) -> None:
    mine: dict[str, object] = {"reveal": kind}
    theirs = mine if kind == "count" else mine | {"give": "amount"}
    result = reveal(mine, theirs)
    assert (result.value, result.counted, result.withheld, result.rows) == (value, counted, False, None)
    held = reveal(mine | {"min_matches": 3}, theirs | {"min_matches": 3})
    assert (held.value, held.withheld) == (None, True)


def test_what_cannot_be_revealed_is_said_at_once() -> None:
    table = tables()["polars"]
    wrong: list[tuple[dict[str, object], type[tacit.Error], str]] = [
        ({"reveal": "everything"}, tacit.UsageError, "choose one of rows"),
        ({"reveal": "max:amount"}, tacit.UsageError, "semi-honest"),
        ({"reveal": "payload:city", "min_matches": 3}, tacit.UsageError, "shows the matches first"),
        ({"reveal": "payload", "result": "peer", "give": "none"}, tacit.InputError, "no column none"),
        (
            {"reveal": "sum:mail", "result": "peer", "give": "mail", "security": "semi-honest"},
            tacit.InputError,
            "only whole numbers",
        ),
    ]
    for arguments, error, says in wrong:
        with pytest.raises(error, match=says):
            tacit.intersect(table, on="mail", connect="127.0.0.1:9", timeout=1, **arguments)
