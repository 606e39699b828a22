#!/usr/bin/env python3
"""Chooses the seeds of targets out of what fuzzing has found: few and small inputs that reach most.

    fuzz/grow.py FUZZ OUT [TARGET]...

FUZZ is the binary, OUT the folder of a campaign. libFuzzer says which edges each input reaches; those of the inputs that
`tacit_fuzz::whole` makes are reached anyway. Of all others the one is taken that reaches most new edges a byte, until
nothing is new or the target's bytes are spent. Inputs that once failed stay: their names have a hyphen.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What a file costs beside its bytes: else many tiny ones would be chosen.
FILE = 200
# Bytes of a target's seeds. A container, a chain or a key is longer than a line of text.
MOST, USUAL, LONG = 24, 4500, {"arrow": 26000, "xlsx": 11000, "xlsb": 7000, "xls": 27000, "parquet": 8000, "records": 9000}


def reached(fuzz, target, longest, folders):
    """The inputs in the folders, with the edges that each reaches and none before it did; as libFuzzer merges them."""
    with tempfile.TemporaryDirectory() as scratch:
        control, into = Path(scratch) / "control", Path(scratch) / "into"
        into.mkdir()
        words = [fuzz, "-merge=1", f"-merge_control_file={control}", f"-max_len={longest}", "-timeout=20", into, *folders]
        env = {**os.environ, "TACIT_FUZZ": target}
        subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = control.read_text().splitlines()
    count = int(lines[0])
    names, edges = lines[2 : 2 + count], {}
    for line in lines[2 + count :]:
        kind, number, *numbers = line.split()
        if kind == "COV":
            edges.setdefault(int(number), set()).update(numbers)
    return {Path(name): edges.get(at, set()) for at, name in enumerate(names)}


def chosen(found, budget, base):
    """Inputs that reach most a byte, within so many bytes."""
    have, out = set(base), []
    sizes = {path: max(path.stat().st_size, 16) for path in found}
    while len(out) < MOST:
        fits = [path for path in found if path not in out and sizes[path] <= budget and found[path] - have]
        if not fits:
            break
        best = max(fits, key=lambda path: (len(found[path] - have) / (sizes[path] + FILE), str(path)))
        out.append(best)
        have |= found[best]
        budget -= sizes[best]
    return out


def grow(fuzz, out, target, longest):
    seeds, whole = HERE / "seeds" / target, out / "whole" / target
    seeds.mkdir(parents=True, exist_ok=True)
    folders = [folder for folder in (whole, seeds, out / target / "corpus") if folder.is_dir()]
    found = reached(fuzz, target, longest, folders)
    base = set().union(*(edges for path, edges in found.items() if path.parent == whole))
    kept = [path for path in seeds.iterdir() if "-" in path.name]
    others = {path: edges for path, edges in found.items() if path.parent != whole and path not in kept}
    best = chosen(others, LONG.get(target, USUAL), base)
    if not best and not kept:
        best = [min(found, key=lambda path: path.stat().st_size)]
    with tempfile.TemporaryDirectory() as scratch:
        for path in best:
            shutil.copy(path, Path(scratch) / hashlib.sha1(path.read_bytes()).hexdigest()[:12])
        for path in seeds.iterdir():
            if path not in kept:
                path.unlink()
        for path in Path(scratch).iterdir():
            shutil.copy(path, seeds / path.name)
    size = sum(path.stat().st_size for path in seeds.iterdir())
    print(f"{target}: {len(list(seeds.iterdir()))} inputs, {size} bytes", flush=True)


def main():
    fuzz, out, *wanted = sys.argv[1:]
    for line in (Path(out) / "whole" / "targets").read_text().splitlines():
        target, longest = line.split()
        if not wanted or target in wanted:
            grow(str(Path(fuzz).resolve()), Path(out), target, longest)


if __name__ == "__main__":
    main()
