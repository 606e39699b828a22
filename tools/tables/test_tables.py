#!/usr/bin/env python3
"""Tables by other people's writers: each is read by `tacit psi` with a peer that has the same keys, and what it writes
is read by at least two other readers, whose every cell has to be that of the file that went in.

The files come from pyarrow, pandas, Polars, DuckDB, fastparquet, openpyxl, xlsxwriter and by hand; what is not installed
is said to be left out. `EXCEPTIONS` lists what differs and why. Ends with `N passed, N failed`.
"""

import csv
import datetime
import decimal
import importlib.util
import io
import os
import socket
import subprocess
import sys
import tempfile
import unittest
import uuid
from pathlib import Path

import suite
from suite import ROOT

NEEDED = ("pyarrow", "pandas", "polars", "duckdb", "fastparquet", "openpyxl", "xlsxwriter")

# (writer, target) -> why a cell that comes out is not the one that went in.
EXCEPTIONS = {
    ("hand: empty and null", "parquet"): "CSV has one empty cell, for empty text and for nothing: a null",
}

YEARS = [datetime.datetime(year, 6, 15, 12, 30, 1, 7) for year in (1, 1000, 1900, 2024, 9999)]


def arrow_table():
    import pyarrow as pa

    days = [datetime.date(year, 2, 28) for year in (1, 1582, 1970, 2024, 9999)]
    return pa.table({
        "k": pa.array([f"key{i}" for i in range(5)]),
        "int": pa.array([-(2**63), None, 0, 1, 2**63 - 1], pa.int64()),
        "unsigned": pa.array([0, 1, None, 2**63, 2**64 - 1], pa.uint64()),
        "float": pa.array([0.1, -0.0, None, 1e308, 5e-324], pa.float64()),
        "text": pa.array(["", None, "é\u0301", 'say "hi"', "a\r\nb"]),
        "category": pa.array(["x", "y", None, "x", "z"]).dictionary_encode(),
        "day": pa.array(days, pa.date32()),
        "day64": pa.array(days, pa.date64()),
        "micros": pa.array(YEARS, pa.timestamp("us")),
        "utc": pa.array(YEARS, pa.timestamp("us", "UTC")),
        "seconds": pa.array([-1, 0, None, 1, 2**31], pa.timestamp("s")),
        "decimal": pa.array([decimal.Decimal(text) for text in ("-0.01", "0.00", "1.50", "99999999.99", "7.00")],
                            pa.decimal128(10, 2)),
        "bytes": pa.array([b"", b"\x00\xff", None, b"a", b"b"]),
        "list": pa.array([[1, None], [], None, [2], [3, 4]], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1}, {"a": None}, None, {"a": 2}, {"a": 3}]),
        "bool": pa.array([True, False, None, True, False]),
    })


def by_pyarrow(folder):
    """(name, file) of what pyarrow writes."""
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    table = arrow_table()
    pq.write_table(table, folder / "pyarrow.parquet")
    yield "pyarrow: Parquet", folder / "pyarrow.parquet"
    pq.write_table(table, folder / "v1.parquet", version="1.0", data_page_version="2.0", compression="gzip",
                   store_schema=False, row_group_size=2)
    yield "pyarrow: Parquet 1.0 in row groups", folder / "v1.parquet"
    feather.write_feather(table, folder / "pyarrow.arrow", compression="lz4")
    yield "pyarrow: Feather, LZ4", folder / "pyarrow.arrow"
    moments = pa.table({"k": [f"key{i}" for i in range(5)], "t": pa.array(YEARS, pa.timestamp("us"))})
    pq.write_table(moments, folder / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    yield "pyarrow: timestamps of 96 bits", folder / "int96.parquet"
    pieces = [pa.array([f"v{at + i % 9}" for i in range(10_000)]).dictionary_encode() for at in (0, 5, 50)]
    schema = pa.schema([("k", pa.string()), ("v", pieces[0].type)])
    with pq.ParquetWriter(folder / "dictionaries.parquet", schema) as writer:
        for at, piece in enumerate(pieces):
            keys = pa.array([f"{at}-{i}" for i in range(10_000)])
            writer.write_table(pa.table([keys, piece], schema=schema))
    yield "pyarrow: a dictionary a row group", folder / "dictionaries.parquet"


def by_pandas(folder):
    import pandas as pd

    frame = pd.DataFrame({
        "k": [f"key{i}" for i in range(4)],
        "n": pd.array([1, None, 3, 4], dtype="Int64"),
        "when": pd.to_datetime(["2024-01-31 12:00:00.000000001", None, "1970-01-01", "2100-12-31"], format="ISO8601").astype("M8[ns]"),
        "kind": pd.Categorical(["a", "b", None, "a"]),
    }, index=[7, 5, 3, 1])
    frame.to_parquet(folder / "pandas.parquet")
    yield "pandas: Parquet with an index", folder / "pandas.parquet"
    frame.to_csv(folder / "pandas.csv", index=False)
    yield "pandas: CSV", folder / "pandas.csv"


def by_polars(folder):
    import polars as pl

    frame = pl.DataFrame({"k": ["a", "b", "c"], "n": [1.5, None, float("nan")], "t": ["x,y", None, "é"],
                          "when": [datetime.datetime(2024, 1, 31, 1), None, datetime.datetime(1, 1, 1)]})
    frame.write_parquet(folder / "polars.parquet")
    yield "Polars: Parquet", folder / "polars.parquet"
    frame.write_ipc(folder / "polars.arrow", compression="zstd", compat_level=pl.CompatLevel.oldest())
    yield "Polars: Arrow, zstd", folder / "polars.arrow"
    frame.write_csv(folder / "polars.csv")
    yield "Polars: CSV", folder / "polars.csv"


def by_duckdb(folder):
    import duckdb

    query = """select 'key' || i as k, uuid() as u, ('{"a": ' || i || '}')::json as j, i::hugeint as h,
               (i * 1.5)::decimal(18, 3) as d, date '2024-01-31' + i::int as day, [i, null] as l,
               timestamptz '2024-01-31 12:00:00+00' as z from range(5) t(i)"""
    duckdb.sql(f"copy ({query}) to '{folder / 'duckdb.parquet'}' (format parquet)")
    yield "DuckDB: Parquet with UUID and JSON", folder / "duckdb.parquet"
    plain = "select 'key' || i as k, i * 0.5 as n, 'say \"' || i || '\"' as t, null as nothing from range(5) t(i)"
    duckdb.sql(f"copy ({plain}) to '{folder / 'duckdb.csv'}' (header, delimiter '|')")
    yield "DuckDB: CSV with bars", folder / "duckdb.csv"


def by_fastparquet(folder):
    import fastparquet
    import pandas as pd

    frame = pd.DataFrame({"k": ["a", "b", "c"], "n": [1, -2, 3], "f": [0.5, float("nan"), 1e300],
                          "t": ["x,y", None, "é"], "b": [True, False, True]})
    for compression in ("UNCOMPRESSED", "SNAPPY", "GZIP"):
        path = folder / f"fastparquet-{compression.lower()}.parquet"
        fastparquet.write(str(path), frame, compression=compression, row_group_offsets=[0, 2])
        yield f"fastparquet: {compression.lower()}, two row groups", path


SHEET = [["k", "n", "f", "day", "when", "flag", "text", "mixed"],
         ["a", 12345, 0.1, datetime.date(2024, 2, 29), datetime.datetime(1999, 12, 31, 12, 30), True, "x,y", "00123"],
         ["b", -7, 1e-7, datetime.date(9999, 12, 31), datetime.datetime(1970, 1, 1, 0, 0, 1), False, 'say "hi"', 5],
         ["c", None, 2.5, None, None, None, "l1\nl2", 1.5]]


def by_excel(folder):
    import openpyxl
    import pandas as pd
    import xlsxwriter

    book = openpyxl.Workbook()
    for row in SHEET:
        book.active.append(row)
    book.save(folder / "openpyxl.xlsx")
    yield "openpyxl: a sheet of every kind", folder / "openpyxl.xlsx"
    for name, options in (("xlsxwriter", {}), ("in-line", {"constant_memory": True})):
        with xlsxwriter.Workbook(folder / f"{name}.xlsx", options) as book:
            sheet, day = book.add_worksheet("Data"), book.add_format({"num_format": "yyyy-mm-dd"})
            moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
            for row, cells in enumerate(SHEET):
                for column, cell in enumerate(cells):
                    if isinstance(cell, datetime.date):
                        sheet.write_datetime(row, column, cell, moment if isinstance(cell, datetime.datetime) else day)
                    else:
                        sheet.write(row, column, cell)
        yield f"xlsxwriter: {name}", folder / f"{name}.xlsx"
    pd.DataFrame(SHEET[1:], columns=SHEET[0]).to_excel(folder / "pandas.xlsx", index=False)
    yield "pandas: Excel", folder / "pandas.xlsx"


def by_hand(folder):
    files = {
        "hand: empty and null": 'k,v\na,\nb,""\nc,x\n',
        "hand: quotes, separators and lines": 'k,v\n"a,1","x ""y"""\nb,"l1\r\nl2"\n"c ",z\n',
        "hand: semicolons, CRLF and a byte order mark": "\ufeffk;v\r\na;1,5\r\nb;é\r\n",
        "hand: no end, empty lines": "k\tv\n\na\t1\n\n\nb\t2",
        "hand: CR alone": "k,v\ra,1\rb,2\r",
    }
    for at, (name, content) in enumerate(files.items()):
        path = folder / f"hand{at}.csv"
        path.write_bytes(content.encode())
        yield name, path


def other_kinds(folder):
    """(name, file, options, the same table as a file that the other readers read) of what others write."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.ipc as ipc
    import pyarrow.feather as feather

    frame = pd.DataFrame({"k": ["Zoë", "José", "ann, b", "x"], "n": pd.array([1, None, 3, 2**53 + 1], dtype="Int64"),
                          "t": ["é; \"x\"", None, "l1\nl2", "€"]})
    twin = folder / "twin.csv"
    frame.to_csv(twin, index=False)
    for kind in ("xz", "bz2", "zip"):
        frame.to_csv(folder / f"packed.{kind}", index=False)
        yield f"pandas: CSV in {kind}", folder / f"packed.{kind}", [], twin
    for encoding in ("cp1252", "utf-16le"):
        frame.to_csv(folder / f"{encoding}.csv", index=False, encoding=encoding)
        yield f"pandas: CSV in {encoding}", folder / f"{encoding}.csv", ["--encoding", encoding], twin
    frame.to_json(folder / "pandas.jsonl", orient="records", lines=True)
    yield "pandas: JSON lines", folder / "pandas.jsonl", [], twin
    pl.from_pandas(frame).write_ndjson(folder / "polars.ndjson")
    yield "Polars: JSON lines", folder / "polars.ndjson", [], twin
    feather.write_feather(arrow_table(), folder / "twin.arrow")
    with ipc.new_stream(folder / "pyarrow.stream", arrow_table().schema) as writer:
        for batch in arrow_table().to_batches(max_chunksize=2):
            writer.write_batch(batch)
    yield "pyarrow: Arrow stream", folder / "pyarrow.stream", [], folder / "twin.arrow"
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(folder / "packed.stream", arrow_table().schema, options=options) as writer:
        writer.write_table(arrow_table())
    yield "pyarrow: Arrow stream, zstd", folder / "packed.stream", [], folder / "twin.arrow"
    parts = [pa.array(["b", "a", "b"]).dictionary_encode(), pa.array(["c", "b", "a"]).dictionary_encode()]
    schema = pa.schema([("k", pa.string()), ("v", parts[0].type)])
    with ipc.new_stream(folder / "dictionaries.stream", schema) as writer:
        for at, part in enumerate(parts):
            writer.write_batch(pa.record_batch([pa.array([f"{at}{i}" for i in range(3)]), part], schema=schema))
    whole = pa.table({"k": ["00", "01", "02", "10", "11", "12"], "v": ["b", "a", "b", "c", "b", "a"]})
    feather.write_feather(whole, folder / "whole.arrow")
    yield "pyarrow: Arrow stream with new dictionaries", folder / "dictionaries.stream", [], folder / "whole.arrow"


WRITERS = [by_pyarrow, by_pandas, by_polars, by_duckdb, by_fastparquet, by_excel, by_hand]


def plain(value):
    """A cell as every reader can say it."""
    if value is None or value is not value and isinstance(value, float):
        return None if value is None else "NaN"
    if isinstance(value, (bytes, bytearray)):
        # DuckDB and pyarrow say a UUID as one, Polars as its bytes, of which the first may be any.
        if len(value) == 16:
            return str(uuid.UUID(bytes=bytes(value)))
        # JSON is text to pyarrow, and bytes to Polars where a file has no schema of Arrow's.
        return value.decode() if value[:1] == b"{" else value.hex()
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (bool, int, float, decimal.Decimal)):
        return str(value)
    if hasattr(value, "value") and hasattr(value, "nanosecond"):  # pandas' timestamps
        return value.isoformat()
    return str(value)


def delimiter_of(path):
    first = path.read_bytes().split(b"\n")[0].split(b"\r")[0]
    return max(",;\t|", key=lambda sign: first.count(sign.encode()))


def by_csv_reader(path):
    text = path.read_bytes().decode("utf-8-sig")
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(path), strict=True) if row]
    return rows[0], [[cell or None for cell in row] for row in rows[1:]]


def by_pyarrow_reader(path):
    import pyarrow.csv as pc
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        table = pq.read_table(path, coerce_int96_timestamp_unit="us")
    elif path.suffix == ".arrow":
        table = feather.read_table(path)
    else:
        parse = pc.ParseOptions(delimiter=delimiter_of(path), newlines_in_values=True)
        names = pc.open_csv(path, parse_options=parse).schema.names
        convert = pc.ConvertOptions(column_types={name: "string" for name in names}, strings_can_be_null=True,
                                    null_values=[""], quoted_strings_can_be_null=True)
        table = pc.read_csv(path, parse_options=parse, convert_options=convert)
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            # A Python datetime has no nanoseconds.
            text = [None if cell is None else exact(cell.value, column.type.unit) for cell in column]
            columns.append([None if cell is None or cell.value is None else moment
                            for cell, moment in zip(column, text)])
        else:
            columns.append([plain(cell) for cell in column.to_pylist()])
    return table.column_names, [list(row) for row in zip(*columns)]


def exact(count, unit):
    """A point in time by its count of units since 1970, to the nanosecond."""
    if count is None:
        return None
    nanos = count * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    seconds, rest = divmod(nanos, 10**9)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    # Arrow's dates of 64 bits are points in time to some readers.
    is_date = rest == 0 and moment.time() == datetime.time()
    return moment.date().isoformat() if is_date else f"{moment.isoformat()}.{rest:09d}"


def by_polars_reader(path):
    import polars as pl

    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
    elif path.suffix == ".arrow":
        frame = pl.read_ipc(path)
    else:
        frame = pl.read_csv(path, separator=delimiter_of(path), infer_schema=False, missing_utf8_is_empty_string=False)
    for name, kind in frame.schema.items():
        if isinstance(kind, pl.Datetime):
            frame = frame.with_columns(pl.col(name).cast(pl.Int64))
    rows = [[plain(cell) for cell in row] for row in frame.rows()]
    units = [kind.time_unit if isinstance(kind, pl.Datetime) else None for kind in read_schema(path).values()] \
        if path.suffix != ".csv" else [None] * len(frame.columns)
    rows = [[exact(int(cell), unit) if unit and cell is not None else cell for cell, unit in zip(row, units)] for row in rows]
    if path.suffix == ".csv":
        rows = [[cell or None for cell in row] for row in rows]
    return frame.columns, rows


def of_a_sheet(value):
    """A cell of a workbook, or the text of one, as every reader can say it."""
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat()
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(decimal.Decimal(repr(value)).normalize())
    return str(value)


def of_a_cell(text):
    """The same of a CSV file's cell, whose numbers may be written otherwise."""
    try:
        return of_a_sheet(float(text)) if text and not text.startswith("00") else of_a_sheet(text)
    except ValueError:
        return of_a_sheet(text)


def by_openpyxl_reader(path):
    import openpyxl

    rows = [list(row) for row in openpyxl.load_workbook(path, data_only=True).active.values]
    return rows[0], [[of_a_sheet(cell) for cell in row] for row in rows[1:]]


def by_pandas_reader(path):
    import pandas as pd

    frame = pd.read_excel(path, dtype=object, keep_default_na=False, na_values=[""])
    rows = [[None if cell is None or cell is pd.NaT else of_a_sheet(cell) for cell in row] for row in frame.itertuples(index=False)]
    return list(frame.columns), rows


def read_schema(path):
    import polars as pl

    return pl.read_parquet_schema(path) if path.suffix == ".parquet" else pl.read_ipc_schema(path)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Tables(unittest.TestCase):
    """One file with itself: every row matches, and every cell comes out as it went in."""

    @classmethod
    def setUpClass(cls):
        cls.tacit = os.environ.get("TACIT", str(ROOT / "target/debug/tacit"))
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        cls.addClassCleanup(cls.folder.cleanup)

    def through(self, source, target, options=()):
        """What `tacit psi` writes of all rows."""
        address = f"127.0.0.1:{free_port()}"
        words = [self.tacit, "psi", "--insecure-plaintext", "--input", source, "--key", "k", *options]
        other = subprocess.Popen([*words, "--listen", address, "--result", "peer"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        run = subprocess.run([*words, "--connect", address, "--output", target, "--overwrite"], capture_output=True, text=True)
        out, err = other.communicate(timeout=300)
        self.assertEqual((run.returncode, other.returncode), (0, 0), run.stderr + out + err)

    def compare_sheet(self, name, source):
        """A workbook, as two readers have it, against what comes out as CSV and as a workbook."""
        for reader in (by_openpyxl_reader, by_pandas_reader):
            names, rows = reader(source)
            target = self.path / "out.xlsx"
            self.through(source, target)
            with self.subTest(file=name, target="xlsx", reader=reader.__name__):
                self.assertEqual(reader(target), (names, rows))
            target = self.path / "out.csv"
            self.through(source, target)
            found = by_csv_reader(target)
            with self.subTest(file=name, target="csv", reader=reader.__name__):
                self.assertEqual(found[0], names)
                self.assertEqual([[of_a_cell(cell) for cell in row] for row in found[1]], rows)

    def compare(self, name, source):
        if source.suffix == ".xlsx":
            return self.compare_sheet(name, source)
        readers = [by_pyarrow_reader, by_polars_reader]
        if source.suffix == ".csv":
            readers = [by_csv_reader, by_pyarrow_reader]
        before = {reader: reader(source) for reader in readers}
        if "96 bits" in name:
            # Polars takes them as nanoseconds, and the years that those lack as the last of them.
            before[by_polars_reader] = before[by_pyarrow_reader]
        if "JSON" in name:
            # Polars reads JSON as bytes, or as text where a schema of Arrow's stands beside Parquet's, as in ours.
            before[by_polars_reader] = before[by_pyarrow_reader]
        kinds = ["csv", "parquet"] if source.suffix == ".csv" else ["parquet", "arrow"]
        for kind in kinds:
            target = self.path / f"out.{kind}"
            self.through(source, target)
            for reader in [by_pyarrow_reader, by_polars_reader if kind != "csv" else by_csv_reader]:
                known = before.get(reader) or before[by_pyarrow_reader]
                found = reader(target)
                with self.subTest(file=name, target=kind, reader=reader.__name__):
                    self.assertEqual([n.strip() for n in found[0]], [n.strip() for n in known[0]])
                    if (name, kind) not in EXCEPTIONS:
                        self.assertEqual(found[1], known[1])


    def test_other_kinds(self):
        """The same table in kinds that have no other reader here: as those read it that have."""
        missing = [name for name in ("pandas", "pyarrow", "polars") if not importlib.util.find_spec(name)]
        if missing:
            self.skipTest(f"left out: {', '.join(missing)} not installed")
        for name, source, options, twin in other_kinds(self.path):
            target = self.path / f"out{twin.suffix}"
            self.through(source, target, options)
            readers = [by_csv_reader, by_pyarrow_reader] if twin.suffix == ".csv" else [by_pyarrow_reader, by_polars_reader]
            for reader in readers:
                with self.subTest(file=name, reader=reader.__name__):
                    self.assertEqual(reader(target), reader(twin))


def _test(write):
    def test(self):
        needed = {by_pandas: ["pandas"], by_duckdb: ["duckdb"], by_fastparquet: ["fastparquet"],
                  by_excel: ["openpyxl", "xlsxwriter", "pandas"]}.get(write, [])
        missing = [name for name in ("pyarrow", "polars", *needed) if not importlib.util.find_spec(name)]
        if missing:
            self.skipTest(f"left out: {', '.join(missing)} not installed")
        files = 0
        for name, source in write(self.path):
            self.compare(name, source)
            files += 1
        self.assertGreater(files, 1)

    test.__doc__ = f"Files {write.__name__.replace('_', ' ')}."
    return test


for _write in WRITERS:
    setattr(Tables, f"test_files_{_write.__name__}", _test(_write))


if __name__ == "__main__":
    sys.exit(suite.run(Tables, NEEDED))
