"""Real Spark on both sides: two drivers in local mode, two gateways, and what breaks in between."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import BRIEFLY, TACIT, Clusters, clusters, has_java, kill_a_worker

pytest.importorskip("pyspark", reason="PySpark could not be installed")
if not has_java():
    pytest.skip("there is no Java 17 for Spark (Debian: openjdk-17-jre-headless)", allow_module_level=True)

from parties import free_address

#: Each fault by itself is among the long tests; the others have them in one run.
LONG = "TACIT_LONG" in os.environ
#: A run with other faults: TACIT_SEED=N.
SEED = int(os.environ.get("TACIT_SEED", "0")) or random.SystemRandom().randrange(1 << 32)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    print(f"seed {SEED}")
    with clusters(
        tmp_path_factory.mktemp("clusters"), ("local[2,3]", "local[2,3]"), settings=(BRIEFLY, BRIEFLY)
    ) as both:
        yield both


def expected(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, list[int], list[int]]:
    """Common keys, and of either side's frame how many rows they have and what those add up to. Without skewed keys."""
    common = range(max(first[0], second[0]), min(first[1], second[1]))
    rows = len(common) + sum(1 for key in common if key % 10 == 0)
    total = sum(7 * key * (2 if key % 10 == 0 else 1) for key in common)
    return len(common), [rows, total], [rows, total]


def check(said: list[dict[str, Any]], first: tuple[int, int], second: tuple[int, int]) -> list[list[Any]]:
    assert all("result" in one for one in said), (SEED, said)
    common, *rows = expected(first, second)
    results = [one["result"] for one in said]
    for number, (own, peer) in enumerate([(first, second), (second, first)]):
        own_keys, peer_keys, matches, _, learned, frame = results[number]
        assert (own_keys, peer_keys, matches) == (own[1] - own[0], peer[1] - peer[0], common), SEED
        assert frame == rows[number], SEED
        assert f"{own_keys} distinct keys" in learned
    return results


def test_two_hundred_thousand_rows_a_side_through_a_killed_worker_and_gateway(both: Clusters) -> None:
    first, second = (0, 200_000), (150_000, 350_000)
    frames = (f"rows({first[0]}, {first[1]})", f"rows({second[0]}, {second[1]})")
    start, chance = time.monotonic(), random.Random(SEED)
    for number, frame in enumerate(frames):
        both.drivers[number].tell(both.call(number, frame, "large", "buckets=64, timeout=120.0"))
    # In the middle of the buckets, and not all at once.
    both.await_buckets(chance.randrange(1, 30))
    kill_a_worker(both.drivers[chance.randrange(2)], SEED)
    both.await_buckets(chance.randrange(30, 60))
    both.gateways[chance.randrange(2)].restart()
    results = check([driver.wait() for driver in both.drivers], first, second)
    print(
        f"drivers {both.seconds}, run {time.monotonic() - start:.1f} s, {results[0][3]} buckets begun again"
    )
    # Actions read what was written: neither gateway hears of them.
    said = [list(gateway.said) for gateway in both.gateways]
    path = both.folder / "results-0" / "large" / "rows"
    for _ in range(2):
        assert both.drivers[0].ask(f"spark.read.parquet({str(path)!r}).count()") == results[0][5][0]
    assert [list(gateway.said) for gateway in both.gateways] == said


@pytest.mark.skipif(not LONG, reason="a long test")
def test_tasks_killed_in_the_middle(both: Clusters) -> None:
    first, second = (0, 30_000), (10_000, 40_000)
    job = f"killed-{SEED}"
    for number, (low, high) in enumerate((first, second)):
        both.drivers[number].tell(both.call(number, f"rows({low}, {high})", job, "buckets=16, timeout=60.0"))
    before, chance = both.ended_buckets(), random.Random(SEED)
    for turn in range(2):
        both.await_buckets(before + chance.randrange(1, 7) + 7 * turn)
        kill_a_worker(both.drivers[chance.randrange(2)], SEED + turn)
    check([driver.wait() for driver in both.drivers], first, second)


@pytest.mark.skipif(not LONG, reason="a long test")
@pytest.mark.parametrize("number", [0, 1])
def test_a_gateway_killed_and_started_again(both: Clusters, number: int) -> None:
    first, second = (0, 30_000), (10_000, 40_000)
    job, before = f"restarted-{number}-{SEED}", both.ended_buckets()
    for side, (low, high) in enumerate((first, second)):
        both.drivers[side].tell(both.call(side, f"rows({low}, {high})", job, "buckets=16, timeout=60.0"))
    both.await_buckets(before + random.Random(SEED + number).randrange(1, 15))
    both.gateways[number].restart()
    check([driver.wait() for driver in both.drivers], first, second)


def test_an_empty_side_a_skewed_key_and_what_is_refused(both: Clusters) -> None:
    few = "buckets=4, timeout=60.0"
    said = both.both(("rows(0, 2000)", "rows(0, 0)"), "empty", few)
    assert [one["result"][:3] for one in said] == [[2000, 0, 0], [0, 2000, 0]], said
    assert [one["result"][5] for one in said] == [[0, None], [0, None]]
    # Nine of ten rows have one key, which is one key all the same.
    skewed = "rows(0, 2000, 20000)"
    said = both.both((skewed, "rows(0, 1500)"), "skewed", few)
    assert [one["result"][:3] for one in said] == [[2000, 1500, 1500], [1500, 2000, 1500]], said
    assert said[0]["result"][5][0] == 1500 + 150 + 20_000
    # The same job again, by one side alone and while the peer's gateway is gone: what ended is served.
    both.gateways[1].kill()
    both.drivers[0].tell(both.call(0, skewed, "skewed", "buckets=4, timeout=20.0", "skewed-again"))
    assert both.drivers[0].wait()["result"][:4] == said[0]["result"][:4]
    both.gateways[1].start()
    # Other keys under the same name are refused.
    both.drivers[0].tell(both.call(0, "rows(1, 2000, 20000)", "skewed", "timeout=20.0", "skewed-other"))
    refused = both.drivers[0].wait()
    assert refused["error"] == "InputError" and "another number of keys" in refused["text"]
    both.drivers[0].tell(both.call(0, skewed, "skewed", "timeout=20.0"))
    refused = both.drivers[0].wait()
    assert refused["error"] == "UsageError" and "there are rows in" in refused["text"]
    for reveal in ("count", "sum:amount"):
        both.drivers[0].tell(
            both.call(0, "rows(0, 10)", "refused", f"reveal={reveal!r}, timeout=5.0", reveal[:3])
        )
        refused = both.drivers[0].wait()
        assert refused["error"] == "UsageError" and refused["text"].startswith("reveal: "), refused
    # Nobody comes.
    start = time.monotonic()
    both.drivers[1].tell(both.call(1, "rows(0, 100)", "alone", "timeout=3.0"))
    alone = both.drivers[1].wait()
    assert alone["error"] == "PeerError" and "did not come to this job within 3 s" in alone["text"], alone
    assert time.monotonic() - start < 60


def test_columns_of_the_peers_matching_rows(both: Clusters) -> None:
    """Every tenth key has two rows on either side, so that four of the result are theirs. A key of the one, and a cell
    that the other gives, are words for nothing. The five rows without a key are among those without a match."""
    asks = (
        "reveal='payload:amount,mail', rest=True, all_rows=True, max_cell=128, buckets=4, timeout=60.0, "
        "null='uSER505@x.ORG'"
    )
    gives = "reveal='payload', give=['mail', 'amount'], duplicates='all', buckets=4, timeout=60.0, null=['3507', 'n/a']"
    both.drivers[0].tell(
        "(lambda done: [done.matches, done.unopened, done.frame.columns, done.frame.selectExpr('count(*)', "
        "'sum(amount)', 'sum(cast(peer_amount as long))', 'count_if(lower(trim(mail)) = lower(trim(peer_mail)))')"
        ".first()[:], done.rest.count(), [done.all_rows.where(what).count() for what in "
        "('true', 'matched', 'not matched and peer_amount is null')], done.all_rows.columns])"
        f"({both.run(0, 'rows(0, 900)', 'columns', 'me', asks)})"
    )
    both.drivers[1].tell(
        "(lambda done: [done.matches, done.frame is None, done.peer_learned])"
        f"({both.run(1, 'rows(500, 1500)', 'columns', 'peer', gives)})"
    )
    asked, given = (driver.wait() for driver in both.drivers)
    assert "result" in asked and "result" in given, (asked, given)
    times = {key: 4 if key % 10 == 0 else 1 for key in range(500, 900) if key != 505}
    total = sum(7 * key * count for key, count in times.items())
    rows = sum(times.values())
    assert asked["result"] == [
        399,
        0,
        ["mail", "amount", "peer_amount", "peer_mail"],
        [rows, total, total - 3507, rows],
        556,
        [rows + 556, rows, 556],
        ["mail", "amount", "matched", "peer_amount", "peer_mail"],
    ]
    assert given["result"][:2] == [None, True] and "how wide those columns are" in given["result"][2]
    for wrong, named in (
        ("give='colour'", "no column colour"),
        ("give='mail', duplicates='first'", "duplicates"),
    ):
        both.drivers[1].tell(both.run(1, "rows(0, 9)", "wrong", "peer", f"reveal='payload', {wrong}"))
        refused = both.drivers[1].wait()
        assert refused["error"] == "UsageError" and named in refused["text"], refused
    # Several rows of a key are given only where that is said.
    one = gives.replace("'all'", "'refuse'")
    both.drivers[1].tell(both.run(1, "rows(500, 1500)", "once", "peer", one))
    refused = both.drivers[1].wait()
    assert refused["error"] == "InputError" and "several rows have the same key" in refused["text"], refused


def test_files_of_spark_and_of_the_command(both: Clusters, tmp_path: Path) -> None:
    """What Spark writes the command reads, and the other way round: Parquet and CSV."""
    driver = both.drivers[0]
    for form in ("parquet", "csv"):
        folder = tmp_path / form
        options = ".option('header', True)" if form == "csv" else ""
        driver.ask(f"rows(0, 500).coalesce(1).write{options}.{form}({str(folder)!r})")
        (part,) = folder.glob(f"part-*.{form}")
        theirs, out = tmp_path / "theirs.csv", tmp_path / f"out.{form}"
        theirs.write_text("id\n" + "".join(f"user{number}@x.org\n" for number in range(400, 900)))
        address = free_address()
        common = ["--insecure-plaintext", "--connect-timeout", "60"]
        key = ["--key", "mail:email"]
        listener = subprocess.Popen(
            [
                str(TACIT),
                "psi",
                "--listen",
                address,
                "--input",
                str(theirs),
                "--key",
                "id:email",
                "--result",
                "peer",
                *common,
            ]
        )
        run = [
            str(TACIT),
            "psi",
            "--connect",
            address,
            "--input",
            str(part),
            *key,
            "--output",
            str(out),
            "--result",
            "me",
        ]
        subprocess.run([*run, *common], check=True, timeout=120)
        assert listener.wait(60) == 0
        read = f"spark.read{options}.{form}({str(out)!r})"
        count = driver.ask(f"[{read}.count(), {read}.selectExpr('sum(cast(amount as long))').first()[0]]")
        assert count == [110, sum(7 * key * (2 if key % 10 == 0 else 1) for key in range(400, 500))]
