#!/usr/bin/env python3
"""Hundreds of tables, drawn by a seed and written by other people's writers, through `tacit psi`: what it writes with
`--output`, `--output-rest` and `--output-all`, in CSV, Parquet, Arrow and Excel, is read by at least two other readers,
and every cell compared with what the same readers find in the file that went in.

    tools/tables/long_tables.py [--only WRITER] [--seed N] [--files N] [--keep FOLDER]

Writers are those of `writers.py`, an old pandas in an environment of its own, and Spark. `EXCEPTIONS` lists what differs
and why. What is not installed is said to be left out. Ends with `N passed, N failed`.
"""

import argparse
import collections
import importlib.util
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from pathlib import Path

import suite
from suite import ROOT

TACIT = os.environ.get("TACIT", str(ROOT / "target/debug/tacit"))
NEEDED = ("pyarrow", "pandas", "polars", "duckdb", "fastparquet", "openpyxl", "xlsxwriter")
#: Files that each writer writes.
FILES = 16
SIZES = [0, 1, 2, 7, 7, 50, 50, 50, 300]
LARGE = 3000

#: Writers that keep every cell of the table that they are given: it counts as one more reader.
FAITHFUL = ("pyarrow: Parquet", "pyarrow: Parquet, nested", "pyarrow: Arrow", "pyarrow: Arrow, nested", "Polars: Parquet",
            "Polars: Parquet, nested", "Polars: Arrow", "DuckDB: Parquet")  # fmt: skip
#: (reader, kind of column, a word of the writer's name) -> why this reader finds something else in the file that went in.
EXCEPTIONS = {
    (
        "Polars",
        "moment",
        "96 bits",
    ): "Polars reads 96 bits as nanoseconds, and turns the years that those lack into others",
}
#: (reader, a word of what it says, a word of the writer's name) -> why it cannot read the file.
UNREAD = {
    ("pyarrow", "delta bit width", "DuckDB"): "pyarrow refuses DuckDB's differences of short whole numbers",
    ("pyarrow", "values=null", "Feather"): "pyarrow has no dictionary of nothing",
    ("Polars", "dictionary key", "Feather"): "Polars refuses the place -1 under a null of a dictionary",
}
#: (reader, a word of the writer's name) -> why the reader is not asked.
UNASKED = {
    (
        "pyarrow",
        "pandas 1.5: spark",
    ): "before 1970 the old pyarrow writes a negative time of day into 96 bits, which the new"
    " one, told to read microseconds, takes for the years 2484 to 2554; Polars, DuckDB and Spark read what was meant",
}


class Disagreement(Exception):
    """A cell, a name or a row that is not what it has to be; or a run that failed."""


def normal(key):
    return unicodedata.normalize("NFC", key).strip().casefold() if key else None


def several(read):
    """A reader of one file as a reader of a folder's."""

    def whole(path, *more):
        if not path.is_dir():
            return read(path, *more)
        parts = [part for part in sorted(path.iterdir()) if part.name[0] not in "._" and part.stat().st_size]
        found = [read(part, *more) for part in parts]
        return *found[0][:-1], [
            [cell for one in found for cell in one[-1][at]] for at in range(len(found[0][0]))
        ]

    return whole


def loosely(read):
    """A reader of sheets or of JSON: cells by their worth."""

    def whole(path):
        import cells

        names, columns = read(path)
        return names, ["loose"] * len(names), [[cells.loose(cell) for cell in column] for column in columns]

    return whole


def by_json(path):
    """JSON lines by Python's reader."""
    import decimal

    rows = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            rows.append(json.loads(line, parse_float=decimal.Decimal))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [[row.get(name) for row in rows] for name in names]


def by_duckdb_json(path):
    """JSON lines by DuckDB's reader: every member as text."""
    import duckdb

    names = by_json(path)[0]
    columns = ", ".join("'{}': 'VARCHAR'".format(name.replace("'", "''")) for name in names)
    with duckdb.connect() as base:
        found = base.sql(
            f"select * from read_json('{path}', format = 'newline_delimited', columns = {{{columns}}})"
        )
        rows = found.fetchall()
    return names, [list(column) for column in zip(*rows)] if rows else [[] for _ in names]


def as_text(read):
    def whole(path, *more):
        names, columns = read(path, *more)
        return names, ["text"] * len(names), [[cell or None for cell in column] for column in columns]

    return whole


class Source:
    """A file that went in: what each reader finds in it, and the table that its writer was given, where that is kept."""

    def __init__(self, name, path, form, options, theirs, drawn=None):
        self.name, self.path, self.form, self.options, self.theirs = name, path, form, options, theirs
        self.read, self.left_out = {}, []
        for reader, function in readers(form, delimiter_of(options)).items():
            if any(reader == who and word in name for who, word in UNASKED):
                continue
            try:
                self.read[reader] = several(function)(path)
            except Exception as error:
                if not excused(UNREAD, reader, name, str(error)):
                    raise Disagreement(
                        f"{reader} cannot read it: {type(error).__name__}: {str(error)[:200]}"
                    ) from error
                self.left_out.append(f"{reader} cannot read a file of {name}")
        if drawn:
            self.read["as drawn"] = drawn
        for reader in list(self.read)[1:]:
            self.agree(reader)
        if len(self.read) < 2:
            raise Disagreement(f"fewer than two readers: {list(self.read)}")
        self.names, self.kinds, self.columns = self.read[next(iter(self.read))]
        keys = self.columns[list(self.names).index("k")]
        known = {normal(key) for key in theirs}
        self.matched = [normal(key) is not None and normal(key) in known for key in keys]

    def agree(self, reader):
        """A reader that finds something else than the first is left out where that is listed, and a failure if not."""
        first = next(iter(self.read))
        names, kinds, columns = self.read[first]
        others, _, found = self.read[reader]
        if list(others) != list(names):
            raise Disagreement(f"{reader} has the names {others}, {first} {names}")
        for at, column in enumerate(found):
            if column == columns[at]:
                continue
            if excused(EXCEPTIONS, reader, self.name, kinds[at]):
                self.left_out.append(f"{reader} differs in a file of {self.name} ({kinds[at]})")
                del self.read[reader]
                return
            raise Disagreement(f"readers differ, {reader} and {first}: {kinds[at]}"
                               f" {first_difference(column, columns[at])}")  # fmt: skip

    def flat(self):
        return not {"nested"} & set(self.kinds)


def excused(listed, reader, name, what):
    return any(reader == who and word in name and kind in what for who, kind, word in listed)


def first_difference(one, other):
    for at, pair in enumerate(zip(one, other)):
        if pair[0] != pair[1]:
            return f"row {at}: {pair[0]!r:.200} and {pair[1]!r:.200}"
    return f"{len(one)} and {len(other)} rows"


def readers(form, delimiter=","):
    import cells

    return {
        "parquet": {"pyarrow": cells.by_pyarrow, "Polars": cells.by_polars, "DuckDB": cells.by_duckdb},
        "arrow": {"pyarrow": cells.by_pyarrow, "Polars": cells.by_polars},
        "csv": {
            "Python": as_text(lambda path: cells.by_csv(path, delimiter)),
            "pyarrow": as_text(lambda path: cells.by_pyarrow_csv(path, delimiter)),
        },
        "xlsx": {"openpyxl": loosely(cells.by_openpyxl), "XML": loosely(cells.by_xml)},
        "jsonl": {"Python": loosely(by_json), "DuckDB": loosely(by_duckdb_json)},
    }[form]


def delimiter_of(options):
    sign = options[options.index("--delimiter") + 1] if "--delimiter" in options else ","
    return "\t" if sign == "tab" else sign


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def intersect(ours, theirs):
    """Runs two sides; says what the one that gets the result says."""
    address = free_port()
    common = ["psi", "--insecure-plaintext", "--key", "k", "--connect-timeout", "60"]
    peer = subprocess.Popen([TACIT, *common, "--listen", address, "--result", "peer", *map(str, theirs)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    run = subprocess.run(
        [TACIT, *common, "--connect", address, *map(str, ours)], check=False, capture_output=True, text=True
    )
    if run.returncode:
        peer.kill()
    peer_error = peer.communicate(timeout=120)[1]
    if run.returncode or peer.returncode:
        words = [line for line in (run.stderr + peer_error).splitlines() if not line.startswith("WARNING")]
        raise Disagreement(f"exit codes {run.returncode} and {peer.returncode}: {' '.join(words)[:400]}")


class Expected:
    """What an output has to hold: names, kinds and cells of the rows that belong into it."""

    def __init__(self, source, rows, reader):
        _, kinds, columns = source.read.get(reader) or source.read[next(iter(source.read))]
        self.names, self.kinds = list(source.names), list(kinds)
        self.columns = [[column[row] for row in rows] for column in columns]

    def add(self, name, kind, cells):
        self.names.append(name)
        self.kinds.append(kind)
        self.columns.append(cells)

    def leave_out_empty_rows(self):
        """What readers of workbooks do."""
        kept = [row for row in zip(*self.columns) if any(cell not in (None, "") for cell in row)]
        self.columns = [list(column) for column in zip(*kept)] if kept else [[] for _ in self.names]


def equal(form, kind, cell, found):
    import cells

    if kind == "loose":
        return cells.loose(cell) == cells.loose(found)
    if kind.startswith("given "):
        return cells.same_in_csv(kind.removeprefix("given "), cell, found)
    if form == "csv":
        return cells.same_in_csv(kind, cell, found)
    if form == "xlsx":
        return cells.same_in_a_sheet(kind, cell, found)
    return cell == found


def compare(source, path, form, rows, more):
    """Every cell of an output, by every reader of its kind."""
    import cells

    found = readers(form, delimiter_of(source.options) if form == source.form else ",")
    if form == "xlsx":
        found = {"openpyxl": cells.by_openpyxl, "XML": cells.by_xml}
    for reader, read in found.items():
        if source.form == form and reader not in source.read:
            continue
        try:
            answer = read(path)
        except Exception as error:
            raise Disagreement(
                f"{path.name}: {reader} cannot read what was written: {error!s:.300}"
            ) from error
        wanted = Expected(source, rows, reader if source.form == form else None)
        for one in more:
            wanted.add(*one)
        names, columns = list(answer[0]), answer[-1]
        if form == "xlsx":
            wanted.leave_out_empty_rows()
        if names != wanted.names:
            raise Disagreement(f"{path.name}, {reader}: names {names}, not {wanted.names}")
        for name, kind, column, cells_wanted in zip(names, wanted.kinds, columns, wanted.columns):
            if len(column) != len(cells_wanted):
                raise Disagreement(f"{path.name}, {reader}: {len(column)} rows, not {len(cells_wanted)}")
            for row, (cell, one) in enumerate(zip(cells_wanted, column)):
                if not equal(form, kind, cell, one):
                    raise Disagreement(f"{path.name}, {reader}: column {name!r} ({kind}), row {row}: "
                                       f"{one!r:.200}, not {cell!r:.200}")  # fmt: skip


def types_stay(source, path, form):
    """From Parquet to Parquet, and from Arrow to Arrow, a column keeps its type."""
    import cells
    import pyarrow.parquet as pq

    if source.path.is_dir():
        return
    if form == source.form == "parquet":
        before, after = pq.ParquetFile(source.path).schema, pq.ParquetFile(path).schema
        for at in range(len(before)):
            one, two = before.column(at), after.column(at)
            said = [
                (c.path, c.physical_type if c.physical_type != "INT96" else "INT64", c.length)
                for c in (one, two)
            ]
            if "Decimal" in str(one.logical_type) and str(one.logical_type) == str(two.logical_type):
                least = next(size for size in range(1, 33) if 10**one.precision <= 2 ** (8 * size - 1))
                # A decimal of few digits that was stored in more bytes than they take becomes a whole number.
                if one.length != least:
                    continue
            if said[0] != said[1] or (
                one.physical_type != "INT96" and str(one.logical_type) != str(two.logical_type)
            ):
                raise Disagreement(f"{path.name}: the type {one} became {two}")
    elif form == source.form == "arrow":
        schemas = []
        for file in (source.path, path):
            with cells.arrow_file(file) as opened:
                schemas.append(opened.schema)
        for one, two in zip(*schemas):
            if one.type != two.type:
                raise Disagreement(f"{path.name}: the type {one.type} became {two.type}")


def given(source, rng, folder):
    """The peer's table, with columns that it gives: (its options, ours, what is to be found in the rows)."""
    import cells
    import drawn
    import pyarrow as pa
    import pyarrow.parquet as pq
    import writers

    # Cells that are shown have one line.
    one_line = {name: lambda text: "\n" not in text and "\r" not in text for name in ("text", "large_text")}
    keys = [key for key in dict.fromkeys(map(normal, source.theirs)) if key]
    chosen = rng.sample(writers.without(writers.FLAT, "time_us", "time_ms"), 3)
    columns = {f"g{at}": drawn.column(rng, {**drawn.kinds(), **drawn.single_kind()}[name], len(keys), 0.2, one_line.get(name))
               for at, name in enumerate(chosen)}  # fmt: skip
    table = pa.table({"k": pa.array(keys, pa.string()), **columns})
    path = folder / "peer.parquet"
    pq.write_table(table, path, row_group_size=10)
    _, kinds, found = cells.of_table(table)
    row_of = {key: at for at, key in enumerate(keys)}
    ours = source.columns[list(source.names).index("k")]
    more = []
    for at, name in enumerate(columns):
        values = [found[at + 1][row_of[normal(key)]] if normal(key) in row_of else None for key in ours]
        more.append((name, f"given {kinds[at + 1]}", values))
    return (
        ["--input", path, "--reveal", "payload", "--give", ",".join(columns)],
        ["--reveal", "payload:" + ",".join(columns)],
        more,
    )


def through(source, rng, folder):
    """One file through three outputs, and what comes out against what went in."""
    forms = ["parquet", "arrow"] if not source.flat() else ["csv", "parquet", "arrow", "xlsx"]
    forms = (rng.sample(forms, len(forms)) * 2)[:3]
    outputs = {option: folder / f"{option.strip('-')}.{form}" for option, form in
               zip(("--output", "--output-rest", "--output-all"), forms)}  # fmt: skip
    for path in outputs.values():
        path.unlink(missing_ok=True)
    peer, more = ["--input", folder / "peer.csv"], []
    ours = ["--input", source.path, *source.options]
    if rng.random() < 0.3:
        peer, options, more = given(source, rng, folder)
        ours += options
    else:
        import csv

        with open(folder / "peer.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["k"], *([key] for key in source.theirs)])
    intersect([*ours, *(word for pair in outputs.items() for word in pair)], peer)
    every = range(len(source.matched))
    if "96 bits" in source.name:
        # Timestamps of 96 bits are read as points in time in UTC, where no schema of Arrow's says otherwise.
        source.kinds[:] = ["zoned" if kind == "moment" else kind for kind in source.kinds]
    for option, path in outputs.items():
        rows = [
            row for row in every if option == "--output-all" or source.matched[row] == (option == "--output")
        ]
        behind = (
            [("matched", "bool", [str(source.matched[row]).lower() for row in rows])]
            if option == "--output-all"
            else []
        )
        if option != "--output-rest":
            behind += [(name, kind, [cells[row] for row in rows]) for name, kind, cells in more]
        compare(source, path, path.suffix[1:], rows, behind)
        types_stay(source, path, path.suffix[1:])
    return [path.suffix[1:] for path in outputs.values()]


class Tally:
    """What passed and what failed, by writer."""

    def __init__(self):
        self.passed, self.failed, self.cells = collections.Counter(), collections.Counter(), 0
        self.left_out = collections.Counter()

    def one(self, name, seed, make, folder):
        """Makes a file and takes it through; a disagreement is printed with what draws the file again."""
        rng = random.Random(f"{name} {seed}")
        try:
            source = make(rng)
            self.left_out.update(source.left_out)
            through(source, rng, folder)
            self.passed[name] += 1
            self.cells += sum(map(len, source.columns))
        except Disagreement as error:
            self.failed[name] += 1
            print(f"FAILED --only '{name}' --seed {seed}: {error}", flush=True)
        except Exception:  # noqa: BLE001
            self.failed[name] += 1
            print(f"FAILED --only '{name}' --seed {seed}: {traceback.format_exc()[-400:]}", flush=True)

    def say(self, name, more=""):
        print(f"{name}: {self.passed[name]} passed, {self.failed[name]} failed{more}", flush=True)


def drawn_table(rng, kinds, only, seed):
    """A table with some of the kinds, each of them in some seed."""
    import drawn

    rows = LARGE if seed == 7 else rng.choice(SIZES)
    count = rng.randint(1, 6)
    chosen = [kinds[(seed * 5 + at) % len(kinds)] for at in range(count)]
    return drawn.table(rng, rows, chosen, only)


def drawn_source(name, seed, rng, folder):
    import cells
    import writers

    form, write, kinds, only = writers.WRITERS[name]
    table, theirs = drawn_table(rng, kinds, only, seed)
    if form in ("jsonl", "xlsx") and table.num_rows == 0:
        table, theirs = drawn_table(random.Random(seed), kinds, only, 7)
    path = folder / f"in.{form}"
    path.unlink(missing_ok=True)
    options = write(table, rng, path)
    return Source(name, path, form, options, theirs, cells.of_table(table) if name in FAITHFUL else None)


#: A folder's parts end with what they are, as Spark names them.
OLD = {"parquet": ("parquet", []), "spark": ("parquet", []), "version 1": ("parquet", []), "fastparquet": ("parquet", []),
       "feather": ("arrow", []), "csv": ("csv", ["--delimiter", ","]), "excel": ("xlsx", [])}  # fmt: skip
OLD_PACKAGES = [
    "pandas==1.5.3",
    "numpy<1.25",
    "pyarrow==10.0.1",
    "fastparquet==2023.2.0",
    "openpyxl",
    "xlsxwriter<3.1",
]
SPARK = {"96 bits": ("parquet", []), "micros": ("parquet", []), "millis": ("parquet", []),
         "csv": ("csv", ["--delimiter", ","]), "json": ("jsonl", [])}  # fmt: skip


def by_old_pandas(tally, seeds, only, folder):
    """Files by pandas 1.5 with pyarrow 10 and fastparquet 2023, which live in an environment of their own."""
    import writers
    from pyarrow import ipc

    named = {way: f"pandas 1.5: {way}" for way in OLD}
    ways = [way for way in OLD if only in named[way]]
    if not ways:
        return
    python = ROOT / "target" / "venv-old-pandas" / "bin" / "python"
    script = [
        ROOT / "scripts" / "venv.sh",
        python.parent.parent,
        sys.executable,
        "fastparquet",
        *OLD_PACKAGES,
    ]
    subprocess.run(list(map(str, script)), check=False, capture_output=True)
    if not python.exists():
        print("note: files by pandas 1.5 are left out: the package index has no such pandas for this Python")
        return
    plan, known = [], {}
    kinds = ["text", "bool", "float", "int8", "int32", "int64", "uint16", "uint64", "moment_us", "day64"]
    for way in ways:
        for seed in seeds:
            rng = random.Random(f"{way} {seed}")
            few = writers.without(kinds, "uint64", "day64") if way in ("excel", "fastparquet") else kinds
            kept = {**writers.NANOS, **(writers.SHEET if way == "excel" else {})}
            if way == "excel":
                kept["moment_us"] = lambda micros: (
                    writers.NANOS["moment_us"](micros) and writers.sheet_moment(micros)
                )
            table, theirs = drawn_table(rng, few, kept, seed)
            if way in ("excel", "fastparquet") and not table.num_rows:
                table, theirs = drawn_table(rng, few, kept, 7)
            form = OLD[way][0]
            source, target = folder / f"{way} {seed}.source", folder / f"{way} {seed}.{form}"
            with ipc.new_file(source, table.schema) as writer:
                writer.write_table(table)
            plan.append({"source": str(source), "target": str(target), "way": way})
            known[str(target)] = (way, seed, theirs)
    answer = helper([python, ROOT / "tools/tables/old_pandas.py"], plan, folder)
    for error in sorted(set(answer["errors"])):
        print(f"note: pandas 1.5 does not write a table, {error}")
    for target in answer["written"]:
        way, seed, theirs = known[target]
        form, options = OLD[way]
        tally.one(named[way], seed, lambda _: Source(named[way], Path(target), form, options, theirs), folder)  # noqa: B023
    for way in ways:
        tally.say(named[way])


def by_spark(tally, seeds, only, folder):
    """Folders by Spark: Parquet with three kinds of timestamps, CSV and JSON lines."""
    named = {way: f"Spark: {way}" for way in SPARK}
    ways = [way for way in SPARK if only in named[way]]
    if not ways:
        return
    sys.path.insert(0, str(ROOT / "python" / "tests"))
    from clusters import has_java

    if not importlib.util.find_spec("pyspark") or not has_java():
        print("note: folders by Spark are left out: PySpark or Java 17 is not there")
        return
    plan, known = [], {}
    for way in ways:
        for seed in seeds:
            target = str(folder / f"spark {way} {seed}")
            plan.append({"target": target, "way": way, "seed": f"{way} {seed}"})
            known[target] = (way, seed)
    answer = helper([sys.executable, ROOT / "tools/tables/by_spark.py"], plan, folder)
    for target, theirs in answer.items():
        way, seed = known[target]
        form, options = SPARK[way]
        tally.one(named[way], seed, lambda _: Source(named[way], Path(target), form, options, theirs), folder)  # noqa: B023
    for way in ways:
        tally.say(named[way])


def helper(command, plan, folder):
    """Lets another Python write files, and returns what it says."""
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    run = subprocess.run(
        [*map(str, command), str(path), str(folder)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    if run.returncode:
        raise SystemExit(f"{command[1]} failed: {run.stderr[-1000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
    if missing and suite.VENV.exists() and Path(sys.prefix) != suite.VENV.parent.parent:
        os.execv(suite.VENV, [str(suite.VENV), *sys.argv])
    if missing:
        print(f"note: tables by other writers are left out: {', '.join(missing)} not installed")
        print("0 passed, 0 failed")
        return 0
    import writers

    warnings.simplefilter("ignore")
    begin, tally = time.monotonic(), Tally()
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True)
        seeds = range(options.files) if options.seed is None else [options.seed]
        for writer in writers.WRITERS:
            if options.only not in writer:
                continue
            start = time.monotonic()
            for seed in seeds:
                tally.one(writer, seed, lambda rng: drawn_source(writer, seed, rng, folder), folder)  # noqa: B023
            tally.say(writer, f" ({time.monotonic() - start:.0f} s)")
        by_old_pandas(tally, seeds, options.only, folder)
        by_spark(tally, seeds, options.only, folder)
    passed, failed = tally.passed.total(), tally.failed.total()
    for why, count in sorted(tally.left_out.items()):
        print(f"note: {why}, {count} times")
    print(f"{tally.cells} cells went in, each out three times ({time.monotonic() - begin:.0f} s)")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
