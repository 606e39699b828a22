#!/usr/bin/env python3
"""CSV with quotes where they do not belong: what Python's reader refuses when it is strict, `tacit check` must refuse too,
and what the command takes must have the rows and keys that Python finds.

A quote that is left open makes one cell of the rest of a file, which a given column would hand to the peer. Files are drawn
by a seed from few marks, so that most have a quote in a wrong place. Ends with `N passed, N failed`.
"""

import csv
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TACIT = os.environ.get("TACIT", str(ROOT / "target/debug/tacit"))
MARKS = ["a", "b", "cd", ",", ",", '"', '"', '""', "\n", "\n", "\r\n"]
FILES = 200


def drawn(seed):
    rng = random.Random(seed)
    return "k,v\n" + "".join(rng.choice(MARKS) for _ in range(rng.randrange(1, 14))) + rng.choice(["", "\n"])


def by_python(text):
    """(rows, distinct keys that are not empty), or nothing where the strict reader refuses the file, or rows differ in
    length."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error:
        return None
    if any(len(row) != len(rows[0]) for row in rows):
        return None
    return len(rows) - 1, len({row[0] for row in rows[1:] if row[0]})


def by_tacit(path):
    run = subprocess.run([TACIT, "--json", "check", "--input", path, "--key", "k"], capture_output=True, text=True)
    if run.returncode == 3:
        return None
    if run.returncode != 0:
        return f"exit code {run.returncode}: {run.stderr}"
    said = json.loads(run.stdout.splitlines()[0])
    return said["rows"], said["keys"]


def main():
    verdicts, refused, taken = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.csv"
        for seed in range(FILES):
            text = drawn(seed)
            path.write_bytes(text.encode())
            python, tacit = by_python(text), by_tacit(path)
            refused, taken = refused + (python is None), taken + (tacit is not None)
            verdicts.append((f"{text!r}: {tacit}, by Python {python}", tacit is None or tacit == python))
    # What is all refused, or all taken, compares nothing.
    verdicts.append((f"{refused} refused by Python, {taken} taken here", refused > FILES // 10 and taken > FILES // 10))
    return told(verdicts)


if __name__ == "__main__":
    sys.exit(main())
