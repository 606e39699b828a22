"""Requests to a service: a real `tacit serve`, asked from Python, and the records of both."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest
from parties import TACIT, service

import tacit

POLICY = '''
key = ["email"]
rows_in_total = 1000000
aggregate_runs = 1000
[jobs.match]
source = "customers"
allow = ["bob"]
reveal = ["rows", "payload"]
result = ["peer"]
give = ["amount"]
max_peer_keys = 1000
min_peer_keys = 2
runs_a_day = 1000
purpose = "a test"
[jobs.sums]
source = "customers"
allow = ["bob"]
reveal = ["sum:amount"]
result = ["peer"]
give = ["amount"]
security = "semi-honest"
max_peer_keys = 1000
runs_a_day = 1000
[jobs.spent]
kind = "question"
source = "customers"
allow = ["bob"]
columns = ["email:join", "amount:filter", "amount:aggregate"]
result = ["peer"]
security = "semi-honest"
min_group = 2
max_peer_keys = 1000
runs_a_day = 1000
[jobs.spent.questions.over]
sql = """SELECT COUNT(*) AS n, SUM(CLIP(a.amount, 0, 99)) AS s FROM ours a JOIN theirs b ON a.email = b.mail
WHERE a.amount >= :least AND b.segment = :segment HAVING COUNT(*) >= 2"""
parameters.least = { type = "integer", least = 0, most = 99 }
parameters.segment = { type = "text", values = ["odd", "it's"] }
'''


class Town:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rows = "".join(f"user{at}@example.com,{at}\n" for at in range(40))
        (folder / "customers.csv").write_text("email,amount\n" + rows)
        self.theirs = polars.DataFrame({"mail": [f"USER{at}@example.com" for at in range(30, 50)]})
        self.path = folder / "kunden.csv"
        self.theirs.write_csv(self.path)
        self.session: tacit.Session
        self.address: str

    def audit(self, records: str, *more: str) -> dict[str, object]:
        command = [TACIT, "--json", "audit", "verify", records, *more]
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        found: dict[str, object] = json.loads(run.stdout)
        return found


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    made = Town(tmp_path_factory.mktemp("town"))
    with service(made.folder, POLICY) as (made.session, made.address):
        yield made


def test_a_run_by_its_terms_leaves_a_record_signed_by_both(town: Town) -> None:
    seen = []

    def accept(offer: tacit.Offer) -> bool:
        seen.append(offer)
        return offer.terms["service_keys"] == 40

    done = town.session.request("match", town.path, "mail", accept=accept)
    assert done.matches == 10 and done.signed_by_both
    assert polars.DataFrame(done)["mail"].to_list() == [f"USER{at}@example.com" for at in range(30, 40)]
    assert "alice (service) has 40 distinct keys (rounded up to two digits), bob (client) has 20" in str(
        seen[0]
    )
    assert done.records == str(town.folder / "bob.records")
    town.audit(done.records, "--run", done.run, "--input", str(town.path))
    town.audit(done.records, "--against", str(town.folder / "state/records"))


def test_a_table_in_memory_is_kept_in_the_file_that_the_record_commits_to(town: Town) -> None:
    kept = town.folder / "kept.arrow"
    done = town.session.request("match", town.theirs, "mail", accept=True, keep=kept, reveal="payload:amount")
    assert polars.DataFrame(done)["peer_amount"].to_list() == [str(at) for at in range(30, 40)]
    assert polars.read_ipc(kept).equals(town.theirs)
    town.audit(done.records, "--run", done.run, "--input", str(kept))
    with pytest.raises(tacit.InputError, match="kept.arrow cannot be written: .*exists"):
        town.session.request("match", town.theirs, "mail", accept=True, keep=kept)
    assert kept.exists()
    with pytest.raises(tacit.UsageError, match="a record commits to a file"):
        town.session.request("match", town.theirs, "mail", accept=True)
    values = ["user1@example.com", "user2@example.com", "nobody@example.com"]
    listed = town.session.request("match", values, accept=True, keep=town.folder / "list.arrow")
    assert listed.to_list() == values[:2]


def test_terms_that_are_not_taken_tell_nothing(town: Town) -> None:
    kept = town.folder / "declined.arrow"
    with pytest.raises(tacit.Declined):
        town.session.request("match", town.theirs, "mail", accept=lambda _: False, keep=kept)
    assert not kept.exists()

    def broken(offer: tacit.Offer) -> bool:
        raise KeyError("accept")

    with pytest.raises(KeyError):
        town.session.request("match", town.path, "mail", accept=broken)
    # What the caller does not take is said, by the name of its setting.
    with pytest.raises(tacit.UsageError, match="security.*semi-honest"):
        town.session.request("sums", town.path, "mail", accept=True)
    with pytest.raises(tacit.UsageError, match="have 1 column"):
        town.session.request("match", town.path, ["mail", "mail"], accept=True)
    # The service goes on, and each offer was given back at once.
    assert town.session.request("match", town.path, "mail", accept=True).matches == 10


def test_a_refusal_names_the_rule(town: Town) -> None:
    few = town.folder / "few.csv"
    few.write_text("mail\nuser1@example.com\n")
    with pytest.raises(tacit.PeerError, match="`min_peer_keys`"):
        town.session.request("match", few, "mail", accept=True)
    with pytest.raises(tacit.PeerError, match="refuses, by its rule"):
        town.session.request("nothing", town.path, "mail", accept=True)


def test_sums_take_a_semi_honest_floor_and_a_stranger_is_turned_away(town: Town) -> None:
    keys = {"connect": town.address, "identity": town.folder / "bob.key", "peer": town.folder / "alice.pub"}
    done = tacit.request("sums", town.path, "mail", accept=True, security="semi-honest", **keys)
    assert done.value == sum(range(30, 40)) and done.rows is None
    tacit.keygen(town.folder / "eve.key")
    start = time.monotonic()
    with pytest.raises(tacit.PeerError):
        tacit.request(
            "match", town.path, "mail", accept=True, wait=5, **{**keys, "identity": town.folder / "eve.key"}
        )
    assert time.monotonic() - start < 20
    with pytest.raises(tacit.UsageError, match="identity= and peer="):
        tacit.request("match", town.path, "mail", accept=True, connect=town.address)


def test_words_for_nothing_and_long_rows_are_as_the_command_has_them(town: Town) -> None:
    # Two keys that are words for nothing, which the service has as well.
    customers = town.folder / "customers.csv"
    before = customers.read_text()
    customers.write_text(before + "n/a,7\nNULL,8\n")
    try:
        table = town.folder / "holes.csv"
        table.write_text("mail\nuser1@example.com\nuser2@example.com\nn/a\n NULL \n")
        assert town.session.request("match", table, "mail", accept=True).matches == 4
        done = town.session.request("match", table, "mail", accept=True, null=["NULL", "n/a"])
        assert done.matches == 2
        assert tacit.check(table, "mail", null=["NULL", "n/a"]).rows_without_key == 2
    finally:
        customers.write_text(before)
    long = town.folder / "long.csv"
    long.write_text("mail,note\nuser1@example.com,x\nuser2@example.com," + "x" * (2 << 20) + "\n")
    with pytest.raises(tacit.InputError, match="line 3"):
        town.session.request("match", long, "mail", accept=True, max_row_mib=1)
    assert town.session.request("match", long, "mail", accept=True, max_row_mib=3).matches == 2
    with pytest.raises(tacit.UsageError, match="max_row_mib"):
        tacit.check(long, "mail", max_row_mib=0)


def test_a_record_commits_to_the_bytes_that_were_read(town: Town) -> None:
    table = town.folder / "changing.csv"
    rows = "mail\n" + "".join(f"user{at}@example.com\n" for at in range(5))
    table.write_text(rows)

    def change(_: tacit.Offer) -> bool:
        table.write_text("mail\nanother@example.com\n")
        return True

    done = town.session.request("match", table, "mail", accept=change)
    assert done.matches == 5
    table.write_text(rows)
    town.audit(done.records, "--run", done.run, "--input", str(table))


def test_a_record_that_cannot_be_written_takes_no_result_away(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    records = town.folder / "blocked.records"
    (records / "private.jsonl").mkdir(parents=True)
    done = town.session.request("match", town.path, "mail", accept=True, records=records)
    assert done.matches == 10 and not done.signed_by_both
    assert any("could not be written" in line.getMessage() for line in caplog.records)
    (records / "private.jsonl").rmdir()
    assert town.session.request("match", town.path, "mail", accept=True, records=records).signed_by_both
    found = town.audit(str(records), "--key", "bob.pub")
    assert (found["records"], found["signed_by_both"]) == (2, 2)


def test_a_question_is_answered_and_recorded(town: Town) -> None:
    table = town.folder / "segments.csv"
    rows = "".join(
        f"user{at}@example.com,{'odd' if at % 2 else chr(39).join(('it', 's'))}\n" for at in range(30, 50)
    )
    table.write_text("mail,segment\n" + rows)
    keys = {"connect": town.address, "identity": town.folder / "bob.key", "peer": town.folder / "alice.pub"}
    settings = {**keys, "security": "semi-honest", "min_group": 2}
    for segment, least in (("odd", 33), ("it's", 0)):
        common = [at for at in range(30, 40) if at % 2 == (segment == "odd") and at >= least]
        values = {"least": least, "segment": segment}
        done = tacit.ask("spent", table, question="over", values=values, accept=True, **settings)
        assert list(done) == [{"n": len(common), "s": sum(common)}]
        assert done.signed_by_both and done.records == str(town.folder / "bob.records")
        town.audit(done.records, "--run", done.run, "--input", str(table))
        # Its text as it was asked is a text of one's own.
        again = tacit.ask(
            "spent", table, sql=done.question, accept=lambda offer: ":least" not in str(offer), **settings
        )
        assert again.rows == done.rows and again.run != done.run
    kept = town.folder / "segments.arrow"
    frame = polars.read_csv(table)
    values = {"least": 0, "segment": "odd"}
    done = tacit.ask("spent", frame, question="over", values=values, accept=True, keep=kept, **settings)
    assert len(done) == 1 and polars.read_ipc(kept).equals(frame)
    for wrong, word in (
        ({"question": "over", "values": {"least": 0}}, "segment has no value"),
        ({"question": "over", "values": {**values, "most": 1}}, "no parameter most"),
        ({"question": "over", "values": {**values, "least": "x"}}, "`x` is not an integer"),
        ({"question": "under"}, "no question under; it has over"),
        ({"sql": "SELEKT"}, "begins with SELECT"),
        ({}, "give sql=, a text of your own, or question="),
        ({"sql": "SELECT", "values": {}}, "give question=, its name"),
        ({"question": "over", "values": values, "min_group": 10}, "min-group|min_group"),
        ({"question": "over", "values": values, "security": "malicious"}, "security"),
        ({"question": "over", "values": values, "allow": {"mail": "join"}}, "allow"),
        ({"question": "over", "values": values, "duplicates": "all"}, "duplicates"),
    ):
        with pytest.raises(tacit.UsageError, match=word):
            tacit.ask("spent", table, accept=True, **{**settings, **wrong})
    for wrong, word in (
        ({"values": {**values, "least": 100}}, "`questions`.*from 0 to 99"),
        ({"values": {**values, "segment": "even"}}, "`questions`"),
    ):
        with pytest.raises(tacit.PeerError, match=word):
            tacit.ask("spent", table, question="over", accept=True, **{**settings, **wrong})
    with pytest.raises(tacit.Declined):
        tacit.ask("spent", table, question="over", values=values, accept=lambda _: False, **settings)
