#!/usr/bin/env python3
"""Spark at size: two drivers in `local[2,3]` and two gateways on this machine, against a plain join, and what that takes
beside what `tacit plan psi` says. Ends with `N passed, N failed`; where PySpark or Java is not there it says so.

    tools/spark/long_spark.py [ROWS…]        20000000 unless said; 1e5 1e6 1e7 are what the model was fitted to

Both parties share this machine's cores, so a side has half of them: that is what the plan is asked for.
`TACIT_COMMAND` names the command, which should be a release build where times matter.
"""

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-py" / "bin" / "python"
BUCKETS = 64
#: From so many rows on a run must take what the plan says, but for a fifth.
CHECKED = 20_000_000


def again_in_the_environment():
    """Runs this file by the Python of the package's tests, with the module that they have built."""
    if (
        not VENV.exists()
        or subprocess.run([VENV, "-c", "import pyspark"], check=False, capture_output=True).returncode
    ):
        print("Spark at size is left out: PySpark is not there (scripts/test_python.py sets it up)")
        print("0 passed, 0 failed")
        return 0
    path = [str(ROOT / "python"), str(ROOT / "python" / "tests")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "TACIT_SPARK": "here"}
    return subprocess.run([VENV, __file__, *sys.argv[1:]], env=environment, check=False).returncode


def plan(tacit, rows, cores):
    words = [
        tacit,
        "--json",
        "plan",
        "psi",
        "--rows",
        str(rows),
        "--executors",
        str(cores),
        "--link",
        "loopback",
    ]
    out = subprocess.run(
        [*map(str, words), "--buckets", str(BUCKETS)], check=True, capture_output=True, text=True
    )
    return json.loads(out.stdout)


def kind(words):
    return "worker" if "pyspark.daemon" in words else "engine" if "java" in words else "driver"


def core_seconds(both):
    """What a side's processes have computed so far, ended children included, and its gateway; the larger of both."""
    ticks, totals = os.sysconf("SC_CLK_TCK"), []
    for driver, gateway in zip(both.drivers, both.gateways):
        each = []
        for pid in [*driver.processes(), gateway.process.pid]:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            each.append(sum(map(int, fields[11:15])) / ticks)
        totals.append((sum(each), each[-1]))
    return totals


class Memory:
    """The most that each kind of process held at once, of either side, looked at every second."""

    def __init__(self, both):
        self.peak, self.ended = {}, threading.Event()
        self.thread = threading.Thread(target=self.watch, args=(both,), daemon=True)
        self.thread.start()

    def watch(self, both):
        page = os.sysconf("SC_PAGE_SIZE")
        while not self.ended.wait(1):
            for driver, gateway in zip(both.drivers, both.gateways):
                processes = {pid: kind(words) for pid, (_, words) in driver.processes().items()}
                for pid, name in {**processes, gateway.process.pid: "gateway"}.items():
                    try:
                        held = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
                    except (OSError, IndexError):
                        continue
                    self.peak[name] = max(self.peak.get(name, 0), held)

    def end(self):
        self.ended.set()
        self.thread.join()
        return {name: held // 1_000_000 for name, held in sorted(self.peak.items())}


def in_buckets(driver):
    """Seconds from the plan to the last bucket of the run that was last, as the driver told them."""
    told = [line for line in driver.errors if " keys here, " in line or "all buckets have ended" in line][-2:]
    stamps = [re.search(r"\d+-\d+-\d+ \d+:\d+:\d+", line)[0] for line in told]
    times = list(map(datetime.datetime.fromisoformat, stamps))
    return (times[-1] - times[0]).total_seconds()


def once(both, tacit, rows, cores):
    """Half of the rows are common; every tenth key has two rows, and a few rows have none."""
    first, second = (0, rows), (rows // 2, rows + rows // 2)
    frames = tuple(f"rows({low}, {high})" for low, high in (first, second))
    start, before, memory = time.monotonic(), core_seconds(both), Memory(both)
    said = both.both(frames, f"size-{rows}", f"buckets={BUCKETS}, timeout=1800.0", timeout=7200)
    seconds = time.monotonic() - start
    pairs = list(zip(core_seconds(both), before))
    computed, relayed = (max(now[at] - then[at] for now, then in pairs) for at in range(2))
    held = memory.end()
    if any("result" not in one for one in said):
        print(said)
        return False
    common = range(rows // 2, rows)
    matched = len(common) + len(common) // 10
    good = all(one["result"][:4] == [rows, rows, len(common), 0] for one in said)
    good = good and all(one["result"][5][0] == matched for one in said)
    planned = plan(tacit, rows, cores)
    print(
        json.dumps(
            {
                "rows": rows,
                "seconds": round(seconds, 2),
                "planned_seconds": round(planned["seconds"], 2),
                "bucket_seconds": max(map(in_buckets, both.drivers)),
                "core_seconds": round(computed, 2),
                "gateway_core_seconds": round(relayed, 2),
                "peak_megabytes": held,
                "right": good,
            }
        ),
        flush=True,
    )
    if rows >= CHECKED:
        # The others are what the model was fitted to.
        near = abs(seconds / planned["seconds"] - 1) <= 0.2
        print(f"{rows} rows: {'within' if near else 'NOT within'} a fifth of the plan", flush=True)
        good = good and near
    return good


def main():
    if os.environ.get("TACIT_SPARK") != "here":
        return again_in_the_environment()
    from clusters import TACIT, clusters, has_java

    if not has_java():
        print("Spark at size is left out: there is no Java 17 for it (scripts/test_python.py sets it up)")
        print("0 passed, 0 failed")
        return 0
    sizes = [int(float(text)) for text in sys.argv[1:]] or [20_000_000]
    cores = max((os.cpu_count() or 2) // 2, 1)
    passed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        clusters(Path(folder), ("local[2,3]", "local[2,3]"), "3g") as both,
    ):
        # What a first job loads is not a size's.
        once(both, TACIT, 1000, cores)
        for rows in sizes:
            passed += once(both, TACIT, rows, cores)
    print(f"{passed} passed, {len(sizes) - passed} failed")
    return 0 if passed == len(sizes) else 1


if __name__ == "__main__":
    sys.exit(main())
