"""What breaks where executors are processes of their own, and a host or a side that is slow: long tests."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from clusters import BRIEFLY, Clusters, clusters, events, has_java, slowed, standalone

pytest.importorskip("pyspark", reason="PySpark could not be installed")
if not has_java():
    pytest.skip("there is no Java 17 for Spark (Debian: openjdk-17-jre-headless)", allow_module_level=True)
if "TACIT_LONG" not in os.environ:
    pytest.skip("a long test", allow_module_level=True)

from test_spark import SEED, check

FIRST, SECOND = (0, 40_000), (10_000, 50_000)
FRAMES = (f"rows({FIRST[0]}, {FIRST[1]})", f"rows({SECOND[0]}, {SECOND[1]})")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """The first side has two executors, and logs what it does."""
    print(f"seed {SEED}")
    folder = tmp_path_factory.mktemp("faults")
    (folder / "events").mkdir()
    settings = {
        "spark.executor.memory": "700m", "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(), "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }  # fmt: skip
    masters = ("local-cluster[2,1,700]", "local[2,3]")
    with clusters(folder, masters, settings=({**BRIEFLY, **settings}, BRIEFLY)) as both:
        yield both


def ends(both: Clusters) -> list[tuple[int, int]]:
    """Of each task that ended at the first side: its stage, and the stage's attempt."""
    said = events(both.folder / "events", "SparkListenerTaskEnd")
    return [(one["Stage ID"], one["Stage Attempt ID"]) for one in said]


def start(both: Clusters, job: str, timeout: float, most: int) -> None:
    """Begins a job, and waits until some of its buckets have ended, `most` of them at most."""
    before = both.ended_buckets()
    for number, frame in enumerate(FRAMES):
        both.drivers[number].tell(both.call(number, frame, job, f"buckets=16, timeout={timeout}"))
    both.await_buckets(before + random.Random(f"{job}{SEED}").randrange(1, most + 1))


def everyone(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


def copies(pages: str) -> list[str]:
    """What Spark says of its speculative attempts at buckets: how each stands."""
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with straight.open(f"{pages}/stages?details=true", timeout=60) as answer:
        stages = json.load(answer)
    tasks = [task for stage in stages if stage["numTasks"] == 16 for task in stage.get("tasks", {}).values()]
    return [task["status"] for task in tasks if task["speculative"]]


def test_a_task_of_a_host_that_is_slow_is_started_on_another_too(tmp_path: Path) -> None:
    """Spark's own cluster, since it starts no copy on the host of the first attempt: two hosts, of which one has a
    thirtieth of the time until the other has a copy of its bucket."""
    job, slow = f"copies-{SEED}", random.Random(SEED).randrange(2)
    settings = {
        "spark.executor.memory": "700m", "spark.ui.enabled": "true", "spark.ui.port": "0",
        "spark.speculation": "true", "spark.speculation.interval": "50ms", "spark.speculation.quantile": "0.3",
        "spark.speculation.multiplier": "1.2", "spark.speculation.minTaskRuntime": "200ms",
    }  # fmt: skip
    with (
        standalone(tmp_path, ("127.0.0.2", "127.0.0.3")) as (master, workers),
        clusters(tmp_path, (master, "local[2,3]"), settings=({**BRIEFLY, **settings}, BRIEFLY)) as both,
    ):
        context = "spark.sparkContext"
        pages = both.drivers[0].ask(f"{context}.uiWebUrl + '/api/v1/applications/' + {context}.applicationId")
        start(both, job, 120.0, 10)
        begun = time.monotonic()
        with slowed(workers[slow].process.pid, 1 / 30, 2.0):
            while not copies(pages):
                assert time.monotonic() - begun < 120, SEED
                time.sleep(0.1)
        waited = time.monotonic() - begun
        results = check([driver.wait() for driver in both.drivers], FIRST, SECOND)
        print(f"seed {SEED}: host {slow} slow for {waited:.1f} s, copies {copies(pages)}")
        # A copy waits for what the first attempt gives, or the other way round: neither costs an attempt.
        assert results[0][3] == 0, SEED
        # Row by row what a plain join gives.
        rows = both.folder / "results-0" / job / "rows"
        frames = [f"{frame}.withColumn('key', f.lower(f.trim('mail')))" for frame in FRAMES]
        joined = f"{frames[0]}.join({frames[1]}, 'key', 'left_semi').drop('key')"
        differ = "(lambda a, b: [a.exceptAll(b).count(), b.exceptAll(a).count()])"
        assert both.drivers[0].ask(f"{differ}(spark.read.parquet({str(rows)!r}), {joined})") == [0, 0], SEED


def test_an_executor_killed_in_the_middle_and_its_stage_run_again(both: Clusters) -> None:
    before = len(ends(both))
    start(both, f"executor-{SEED}", 120.0, 10)
    executors = both.drivers[0].executors()
    assert len(executors) == 2
    # Its part of the shuffle is lost with it: the stage before is run again, for some of its tasks.
    os.kill(random.Random(SEED).choice(executors), signal.SIGKILL)
    results = check([driver.wait() for driver in both.drivers], FIRST, SECOND)
    again = {stage for stage, attempt in ends(both)[before:] if attempt > 0}
    print(f"seed {SEED}: stages {sorted(again)} run again, {results[0][3]} buckets begun again")
    assert again, SEED


@pytest.mark.parametrize("number", [0, 1])
def test_a_side_three_times_slower(both: Clusters, number: int) -> None:
    """It has a third of the time; the other waits for it, and no bucket is begun again."""
    begun = time.monotonic()
    with slowed(both.drivers[number].process.pid, 1 / 3):
        said = both.both(FRAMES, f"slow-{number}-{SEED}", "buckets=16, timeout=120.0", timeout=400)
    results = check(said, FIRST, SECOND)
    print(f"slow side {number}: {time.monotonic() - begun:.1f} s")
    assert results[0][3] == 0, SEED


def test_a_side_that_stands_still_for_longer_than_the_timeout(both: Clusters) -> None:
    """One clear error on the other side, soon after the timeout and not before."""
    start(both, f"still-{SEED}", 6.0, 10)
    both.drivers[0].tell("1")
    end = threading.Event()

    def hold() -> None:
        # Processes that are born meanwhile are held, too.
        while not end.wait(0.1):
            everyone(both.drivers[0].processes(), signal.SIGSTOP)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    try:
        begun = time.monotonic()
        said = both.drivers[1].wait()
        assert said.get("error") == "PeerError" and "no progress for 6 s" in said["text"], (SEED, said)
        assert 5 < time.monotonic() - begun < 60
    finally:
        end.set()
        thread.join()
        everyone(both.drivers[0].processes(), signal.SIGCONT)
    # Whatever the other side comes to, it comes to an end.
    assert {"result", "error"} & set(both.drivers[0].wait(240))
    assert both.drivers[0].wait() == {"result": 1}
