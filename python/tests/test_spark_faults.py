"""What breaks where executors are processes of their own (`local-cluster`), and a side that is slow: long tests."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterable, Iterator

import pytest

pytest.importorskip("pyspark", reason="PySpark could not be installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java for Spark (Debian: openjdk-17-jre-headless)", allow_module_level=True)
if "TACIT_LONG" not in os.environ:
    pytest.skip("a long test", allow_module_level=True)

from clusters import BRIEFLY, Clusters, clusters, events, slowed
from test_spark import SEED, check

FIRST, SECOND = (0, 40_000), (10_000, 50_000)
FRAMES = (f"rows({FIRST[0]}, {FIRST[1]})", f"rows({SECOND[0]}, {SECOND[1]})")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """The first side has two executors, and logs what it does. Copies of slow tasks are among the gateways' own tests:
    Spark starts none on the host of the first, and here is one host."""
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
    with slowed(both.drivers[number], 1 / 3):
        said = both.both(FRAMES, f"slow-{number}-{SEED}", "buckets=16, timeout=30.0", timeout=400)
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
        assert said.get("error") == "PeerError" and "nothing has moved for 6 s" in said["text"], (SEED, said)
        assert 5 < time.monotonic() - begun < 60
    finally:
        end.set()
        thread.join()
        everyone(both.drivers[0].processes(), signal.SIGCONT)
    # Whatever the other side comes to, it comes to an end.
    assert {"result", "error"} & set(both.drivers[0].wait(240))
    assert both.drivers[0].wait() == {"result": 1}
