#!/usr/bin/env python3
"""Spark at size: two drivers in `local[2,3]` and two gateways on this machine, against a plain join, and what that takes
beside what `tacit plan psi` says. Ends with `N passed, N failed`; where PySpark is not there it says so.

    tools/spark/long_spark.py [ROWS…]        20000000 unless said; 1e5 1e6 1e7 are what the model was fitted to

Both parties share this machine's cores, so a side has half of them: that is what the plan is asked for.
`TACIT_COMMAND` names the command, which should be a release build where times matter.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-py" / "bin" / "python"
BUCKETS = 64


def again_in_the_environment():
    """Runs this file by the Python of the package's tests, with the module that they have built."""
    if not VENV.exists() or subprocess.run([VENV, "-c", "import pyspark"], capture_output=True).returncode:
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


def core_seconds(both):
    """What either side's processes have computed so far, ended children included."""
    ticks, parents, times = os.sysconf("SC_CLK_TCK"), {}, {}
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            pid = int(entry.name)
        except (OSError, ValueError, IndexError):
            continue
        parents[pid], times[pid] = int(fields[1]), sum(map(int, fields[11:15])) / ticks
    totals = []
    for driver, gateway in zip(both.drivers, both.gateways):
        mine, grew = {driver.process.pid, gateway.process.pid}, True
        while grew:
            more = {pid for pid, parent in parents.items() if parent in mine} - mine
            mine, grew = mine | more, bool(more)
        totals.append(sum(times.get(pid, 0.0) for pid in mine))
    return totals


def once(both, tacit, rows, cores):
    """Half of the rows are common; every tenth key has two rows, and a few rows have none."""
    first, second = (0, rows), (rows // 2, rows + rows // 2)
    frames = tuple(f"rows({low}, {high})" for low, high in (first, second))
    start, before = time.monotonic(), core_seconds(both)
    said = both.both(frames, f"size-{rows}", f"buckets={BUCKETS}, timeout=1800.0", timeout=7200)
    seconds = time.monotonic() - start
    computed = max(now - then for now, then in zip(core_seconds(both), before))
    if any("result" not in one for one in said):
        print(said)
        return False
    common = range(rows // 2, rows)
    matched = len(common) + len(common) // 10
    good = all(one["result"][:4] == [rows, rows, len(common), 0] for one in said)
    good = good and all(one["result"][5][0] == matched for one in said)
    planned, alone = plan(tacit, rows, cores), plan(tacit, rows, 1)
    print(
        json.dumps(
            {
                "rows": rows,
                "seconds": round(seconds, 2),
                "planned_seconds": round(planned["seconds"], 2),
                "core_seconds": round(computed, 2),
                "planned_core_seconds": round(alone["seconds"], 2),
                "right": good,
            }
        ),
        flush=True,
    )
    return good


def main():
    if os.environ.get("TACIT_SPARK") != "here":
        return again_in_the_environment()
    from clusters import TACIT, clusters

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
