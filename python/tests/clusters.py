"""Two parties with a cluster each: a gateway and a driver of Spark in local mode, all of them real processes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ports import free_address

ROOT = Path(__file__).resolve().parent.parent.parent
TACIT = Path(os.environ.get("TACIT_COMMAND", ROOT / "target" / "debug" / "tacit"))


def has_java() -> bool:
    """Whether Spark finds a Java that it can run on, 17 or later."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else "java"
    try:
        ran = subprocess.run([command, "-version"], check=False, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.search(r'version "(\d+)', ran.stderr)
    return found is not None and int(found[1]) >= 17


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


def family(root: int) -> dict[int, tuple[int, str]]:
    """A process and all that come of it: how deep each is, and its command line."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(entry.name)
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(pid)
    found, todo = {}, [(root, 0)]
    while todo:
        pid, depth = todo.pop()
        with contextlib.suppress(OSError):
            words = (Path("/proc") / str(pid) / "cmdline").read_bytes().decode(errors="replace")
            found[pid] = (depth, words)
        todo.extend((child, depth + 1) for child in children.get(pid, []))
    return found


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
import json, logging, os, sys, time, traceback
logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
logging.getLogger("tacit").setLevel(logging.INFO)
import tacit
from tacit import spark as tacit_spark
from pyspark.sql import SparkSession, functions as f
started = time.monotonic()
builder = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false")
for name, value in {
    "spark.sql.shuffle.partitions": "8", "spark.driver.memory": MEMORY, "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1", "spark.sql.warehouse.dir": FOLDER, "spark.local.dir": FOLDER,
    "spark.log.level": "OFF", "spark.sql.parquet.compression.codec": "gzip", "spark.python.worker.faulthandler.enabled": "false",
    **MORE,
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
print(json.dumps({"ready": time.monotonic() - started}), flush=True)
def rows(first, last, skewed=0):
    # Two rows of every tenth key; text that normalising makes equal; and rows without a key.
    frame = spark.range(first, last, numPartitions=4 if last - first >= 100_000 else 2)
    mail = f.concat(f.when(f.col("id") % 3 == 0, f.lit("  User")).otherwise(f.lit("uSER")), f.col("id"), f.lit("@x.ORG "))
    frame = frame.select(mail.alias("mail"), (f.col("id") * 7).alias("amount"))
    frame = frame.unionByName(frame.where((f.col("amount") / 7) % 10 == 0))
    return frame.unionByName(spark.range(0, skewed + 5, numPartitions=1).select(f.when(f.col("id") < skewed, f.lit(f"user{first}@x.org")).alias("mail"), f.col("id").alias("amount")))
for line in sys.stdin:
    try:
        print(json.dumps({"result": eval(line)}), flush=True)
    except tacit.Error as error:
        print(json.dumps({"error": type(error).__name__, "text": str(error)}), flush=True)
    except BaseException as error:
        print(json.dumps({"error": type(error).__name__, "text": traceback.format_exc()}), flush=True)
"""


#: A JVM that lives for a minute is not worth its second compiler, nor few rows many tasks.
BRIEFLY = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.sql.shuffle.partitions": "2"}


class Driver:
    """A driver of Spark, told expressions a line each."""

    def __init__(self, folder: Path, master: str, memory: str, more: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        given = f"MASTER, MEMORY, FOLDER, MORE = {master!r}, {memory!r}, {str(folder)!r}, {more!r}\n"
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        self.process = subprocess.Popen(
            [sys.executable, "-c", given + DRIVER],
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

    def processes(self) -> dict[int, tuple[int, str]]:
        return family(self.process.pid)

    def workers(self) -> list[int]:
        """The processes that run tasks' Python: the deepest of those of PySpark's daemon, which forks them."""
        ours = {pid: depth for pid, (depth, words) in self.processes().items() if "pyspark.daemon" in words}
        return sorted(pid for pid, depth in ours.items() if depth > min(ours.values()))

    def executors(self) -> list[int]:
        """The executors' JVMs, where they are processes of their own."""
        ours = self.processes().items()
        return sorted(pid for pid, (_, words) in ours if "CoarseGrainedExecutorBackend" in words)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            if self.process.stdin:
                self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()


class Clusters:
    """Both parties."""

    def __init__(
        self, folder: Path, masters: tuple[str, str], memory: str, settings: tuple[dict[str, str], ...]
    ) -> None:
        import tacit

        self.folder = folder
        keys = [folder / "a.key", folder / "b.key"]
        for key in keys:
            tacit.keygen(key)
        addresses = [free_address() for _ in range(3)]
        self.drivers = [
            Driver(folder / f"driver-{number}", master, memory, more)
            for number, (master, more) in enumerate(zip(masters, settings, strict=True))
        ]
        self.gateways = []
        for number in range(2):
            (folder / f"side-{number}").mkdir()
            self.gateways.append(Gateway(folder / f"side-{number}", number, addresses, keys))
        self.seconds = [driver.wait()["ready"] for driver in self.drivers]

    def run(
        self, number: int, frame: str, job: str, result: str, more: str, folder: str | None = None
    ) -> str:
        """The expression that runs a job on one side."""
        gateway = self.gateways[number]
        results = self.folder / f"results-{number}" / (folder or job)
        return (
            f"tacit_spark.run({frame}, on={{'mail': 'email'}}, job={job!r}, gateway={gateway.cluster!r}, "
            f"token={str(gateway.state / 'token')!r}, results={str(results)!r}, result={result!r}, {more})"
        )

    def call(self, number: int, frame: str, job: str, more: str = "", folder: str | None = None) -> str:
        """The same, and what came of it as plain values."""
        return (
            f"(lambda done: [done.own_keys, done.peer_keys, done.matches, done.repeated, done.peer_learned, "
            f"None if done.frame is None else [done.frame.count(), done.frame.selectExpr('sum(amount)').first()[0]]])"
            f"({self.run(number, frame, job, 'both', more, folder)})"
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

    def ended_buckets(self) -> int:
        """How many results the first gateway has on its disk, of all jobs."""
        return sum(1 for _ in (self.gateways[0].state / "jobs").glob("*/bucket-*.?"))

    def await_buckets(self, count: int, timeout: float = 120) -> None:
        """Until it has so many."""
        end = time.monotonic() + timeout
        while self.ended_buckets() < count:
            assert time.monotonic() < end, (self.gateways[0].said, self.gateways[1].said)
            time.sleep(0.01)

    def end(self) -> None:
        for driver in self.drivers:
            driver.end()
        for gateway in self.gateways:
            gateway.kill()


@contextlib.contextmanager
def clusters(
    folder: Path,
    masters: tuple[str, str],
    memory: str = "1g",
    settings: tuple[dict[str, str], ...] = ({}, {}),
) -> Iterator[Clusters]:
    both = Clusters(folder, masters, memory, settings)
    try:
        yield both
    finally:
        both.end()


class Daemon:
    """A master or a worker of Spark's own cluster, in the foreground."""

    def __init__(self, folder: Path, kind: str, *words: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(folder)}
        self.process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--webui-port", "0", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.said = Lines(self.process.stderr).all

    def await_line(self, text: str, timeout: float = 60) -> None:
        end = time.monotonic() + timeout
        while not any(text in line for line in self.said):
            assert time.monotonic() < end and self.process.poll() is None, self.said[-30:]
            time.sleep(0.05)

    def end(self) -> None:
        # A worker that is told to end takes its executors with it.
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def standalone(folder: Path, hosts: Sequence[str]) -> Iterator[tuple[str, list[Daemon]]]:
    """A cluster of Spark's own, with a worker of one core on each host: where its master is, and the workers."""
    host, port = free_address().split(":")
    master = f"spark://{host}:{port}"
    daemons = [Daemon(folder, "master.Master", "--host", host, "--port", port)]
    try:
        daemons[0].await_line("I have been elected leader")
        for number, host in enumerate(hosts):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"))
            daemons.append(Daemon(folder, "worker.Worker", "--host", host, *work, master))
        for worker in daemons[1:]:
            worker.await_line("Successfully registered with master")
        yield master, daemons[1:]
    finally:
        for daemon in reversed(daemons):
            daemon.end()


def one_of(what: Callable[[], list[int]], seed: int, timeout: float = 60) -> int:
    """One of the processes, by lot, as soon as there is one."""
    choice, end = random.Random(seed), time.monotonic() + timeout
    while time.monotonic() < end:
        if found := what():
            return choice.choice(found)
        time.sleep(0.02)
    raise AssertionError("there is no such process")


def kill_a_worker(driver: Driver, seed: int) -> None:
    """Kills one of the driver's Python workers."""
    while True:
        with contextlib.suppress(ProcessLookupError):
            return os.kill(one_of(driver.workers, seed), signal.SIGKILL)


@contextlib.contextmanager
def slowed(root: int, share: float, period: float = 0.3) -> Iterator[None]:
    """A process and all that come of it run for this share of the time, and stand still for the rest."""
    ended = threading.Event()

    def everyone(what: signal.Signals) -> None:
        for pid in family(root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)

    def work() -> None:
        while not ended.is_set():
            everyone(signal.SIGSTOP)
            ended.wait(period * (1 - share))
            everyone(signal.SIGCONT)
            ended.wait(period * share)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        everyone(signal.SIGCONT)


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    """What Spark has logged of one kind in this folder so far."""
    found = []
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            # The last line may be half-written.
            with contextlib.suppress(json.JSONDecodeError):
                said = json.loads(line)
                if said["Event"] == kind:
                    found.append(said)
    return found
