"""Two parties with a cluster each: a gateway and a driver of Spark in local mode, all of them real processes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parties import free_address

ROOT = Path(__file__).resolve().parent.parent.parent
TACIT = Path(os.environ.get("TACIT_COMMAND", ROOT / "target" / "debug" / "tacit"))


class Lines:
    """What a process says, a line at a time, as it comes."""

    def __init__(self, stream: Any) -> None:
        self.all: list[str] = []
        self.queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            self.all.append(line.rstrip("\n"))
            self.queue.put(line)
        self.queue.put(None)


class Gateway:
    """A party's gateway, which can be killed and started again."""

    def __init__(self, folder: Path, number: int, addresses: list[str], keys: list[Path]) -> None:
        way = ["--listen", addresses[0]] if number == 0 else ["--connect", addresses[0]]
        self.cluster = addresses[1 + number]
        self.state = folder / "state"
        peer = keys[1 - number].with_suffix(".pub")
        self.command = [
            str(TACIT), "--json", "gateway", *way, "--identity", str(keys[number]), "--peer", str(peer),
            "--cluster", self.cluster, "--state", str(self.state), "--timeout", "60",
        ]  # fmt: skip
        self.said: list[str] = []
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        told = Lines(self.process.stdout)
        self.said = Lines(self.process.stderr).all
        line = told.queue.get(timeout=60)
        assert line and json.loads(line)["cluster"] == self.cluster, self.said

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()


DRIVER = """
import json, os, sys, time, traceback
import tacit
from tacit import spark as tacit_spark
from pyspark.sql import SparkSession, functions as f
started = time.monotonic()
builder = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false")
for name, value in {
    "spark.sql.shuffle.partitions": "8", "spark.driver.memory": MEMORY, "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1", "spark.sql.warehouse.dir": FOLDER, "spark.local.dir": FOLDER,
    "spark.log.level": "OFF", "spark.sql.parquet.compression.codec": "gzip", "spark.python.worker.faulthandler.enabled": "false",
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
print(json.dumps({"ready": time.monotonic() - started}), flush=True)
def rows(first, last, skewed=0):
    # Two rows of every tenth key; text that normalising makes equal; and rows without a key.
    frame = spark.range(first, last, numPartitions=4)
    mail = f.concat(f.when(f.col("id") % 3 == 0, f.lit("  User")).otherwise(f.lit("uSER")), f.col("id"), f.lit("@x.ORG "))
    frame = frame.select(mail.alias("mail"), (f.col("id") * 7).alias("amount"))
    frame = frame.unionByName(frame.where((f.col("amount") / 7) % 10 == 0))
    return frame.unionByName(spark.range(skewed + 5).select(f.when(f.col("id") < skewed, f.lit(f"user{first}@x.org")).alias("mail"), f.col("id").alias("amount")))
for line in sys.stdin:
    try:
        print(json.dumps({"result": eval(line)}), flush=True)
    except tacit.Error as error:
        print(json.dumps({"error": type(error).__name__, "text": str(error)}), flush=True)
    except BaseException as error:
        print(json.dumps({"error": type(error).__name__, "text": traceback.format_exc()}), flush=True)
"""


class Driver:
    """A driver of Spark, told expressions a line each."""

    def __init__(self, folder: Path, master: str, memory: str, more: str = "") -> None:
        folder.mkdir(exist_ok=True)
        given = f"MASTER, MEMORY, FOLDER = {master!r}, {memory!r}, {str(folder)!r}\n"
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        self.process = subprocess.Popen(
            [sys.executable, "-c", given + DRIVER + textwrap.dedent(more)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.lines, self.errors = Lines(self.process.stdout), Lines(self.process.stderr).all

    def wait(self, timeout: float = 180) -> dict[str, Any]:
        line = self.lines.queue.get(timeout=timeout)
        assert line is not None, self.errors[-30:]
        said: dict[str, Any] = json.loads(line)
        return said

    def tell(self, expression: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(expression.replace("\n", " ") + "\n")
        self.process.stdin.flush()

    def ask(self, expression: str, timeout: float = 180) -> Any:
        self.tell(expression)
        said = self.wait(timeout)
        assert "result" in said, said
        return said["result"]

    def workers(self) -> list[int]:
        """The processes that run tasks' Python: grandchildren of the driver, but for the one that forks them."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid = int(entry.name)
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(pid)
        found, todo = [], [(self.process.pid, 0)]
        while todo:
            pid, depth = todo.pop()
            with contextlib.suppress(OSError):
                words = (Path("/proc") / str(pid) / "cmdline").read_bytes()
                if b"pyspark.daemon" in words and depth > 1 and pid not in found:
                    # The daemon itself has forked workers; a worker has none.
                    found.append(pid)
            todo.extend((child, depth + 1) for child in children.get(pid, []))
        return [pid for pid in found if pid not in children]

    def end(self) -> None:
        with contextlib.suppress(OSError):
            if self.process.stdin:
                self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()


class Clusters:
    """Both parties."""

    def __init__(self, folder: Path, masters: tuple[str, str], memory: str = "1g") -> None:
        import tacit

        self.folder = folder
        keys = [folder / "a.key", folder / "b.key"]
        for key in keys:
            tacit.keygen(key)
        addresses = [free_address() for _ in range(3)]
        self.drivers = [
            Driver(folder / f"driver-{number}", master, memory) for number, master in enumerate(masters)
        ]
        self.gateways = []
        for number in range(2):
            (folder / f"side-{number}").mkdir()
            self.gateways.append(Gateway(folder / f"side-{number}", number, addresses, keys))
        self.seconds = [driver.wait()["ready"] for driver in self.drivers]

    def call(self, number: int, frame: str, job: str, more: str = "", folder: str | None = None) -> str:
        """The expression that runs a job on one side: what came of it as plain values."""
        gateway = self.gateways[number]
        results = self.folder / f"results-{number}" / (folder or job)
        return (
            f"(lambda done: [done.own_keys, done.peer_keys, done.matches, done.repeated, done.peer_learned, "
            f"None if done.frame is None else [done.frame.count(), done.frame.selectExpr('sum(amount)').first()[0]]])"
            f"(tacit_spark.run({frame}, on={{'mail': 'email'}}, job={job!r}, gateway={gateway.cluster!r}, "
            f"token={str(gateway.state / 'token')!r}, results={str(results)!r}, result='both', {more}))"
        )

    def both(
        self, frames: tuple[str, str], job: str, more: str = "buckets=16, timeout=60.0", timeout: float = 240
    ) -> list[dict[str, Any]]:
        for number, frame in enumerate(frames):
            self.drivers[number].tell(self.call(number, frame, job, more))
        return [driver.wait(timeout) for driver in self.drivers]

    def progress(self, number: int, job: str) -> bool:
        """Whether a job has been settled at a gateway."""
        return any(f"job {job}: settled" in line for line in self.gateways[number].said)

    def await_settled(self, job: str, timeout: float = 120) -> None:
        end = time.monotonic() + timeout
        while not self.progress(0, job):
            assert time.monotonic() < end, (self.gateways[0].said, self.gateways[1].said)
            time.sleep(0.02)

    def end(self) -> None:
        for driver in self.drivers:
            driver.end()
        for gateway in self.gateways:
            gateway.kill()


@contextlib.contextmanager
def clusters(folder: Path, masters: tuple[str, str], memory: str = "1g") -> Iterator[Clusters]:
    both = Clusters(folder, masters, memory)
    try:
        yield both
    finally:
        both.end()


def kill_a_worker(driver: Driver, seed: int, timeout: float = 30) -> int:
    """Kills one of the driver's Python workers, as soon as there is one."""
    choice, end = random.Random(seed), time.monotonic() + timeout
    while time.monotonic() < end:
        if workers := driver.workers():
            victim = choice.choice(sorted(workers))
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                return victim
        time.sleep(0.02)
    raise AssertionError("the driver has no worker")
