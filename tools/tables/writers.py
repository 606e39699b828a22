"""Other people's writers: each writes a table of Arrow's in one of its own ways, drawn from a seed.

A writer has a name, the kind of file that comes of it, and what it cannot take. `write` returns the options by which
`tacit` reads the file. Brotli is not among the codecs: `tacit` says that it does not read it.
"""

import csv
import io
import json

import drawn

FLAT = [*drawn.kinds(), *drawn.single_kind()]
NESTED = list(drawn.nested_kinds())
SIMPLE = ["text", "category", "bool", "float", "day", "moment_us", "decimal10_2", *(f"int{bits}" for bits in (8, 16, 32, 64)),
          *(f"uint{bits}" for bits in (8, 16, 32, 64))]  # fmt: skip


def without(names, *left_out):
    return [name for name in names if name not in left_out]


def pyarrow_parquet(table, rng, path):
    import pyarrow.parquet as pq

    nanos = any("timestamp[ns" in str(field.type) for field in table.schema)
    pq.write_table(
        table,
        path,
        version="2.6" if nanos else rng.choice(["1.0", "2.4", "2.6"]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        compression=rng.choice(["none", "snappy", "gzip", "zstd", "lz4"]),
        row_group_size=rng.choice([1, 7, 100, 10**6]) if table.num_rows < 500 else 1000,
        use_dictionary=rng.random() < 0.7,
        store_schema=rng.random() < 0.5,
        write_page_index=rng.random() < 0.5,
        write_statistics=rng.random() < 0.7,
        store_decimal_as_integer=rng.random() < 0.5,
        data_page_size=rng.choice([None, 100]),
    )
    return []


def pyarrow_int96(table, rng, path):
    import pyarrow.parquet as pq

    pq.write_table(
        table,
        path,
        use_deprecated_int96_timestamps=True,
        store_schema=False,
        row_group_size=rng.choice([3, 1000]),
    )
    return []


def pyarrow_arrow(table, rng, path):
    from pyarrow import ipc

    options = ipc.IpcWriteOptions(
        compression=rng.choice([None, "lz4", "zstd"]), emit_dictionary_deltas=rng.random() < 0.5
    )
    start = ipc.new_stream if rng.random() < 0.4 else ipc.new_file
    with start(path, table.schema, options=options) as writer:
        writer.write_table(
            table, max_chunksize=rng.choice([1, 7, 100, 10**6]) if table.num_rows < 500 else 1000
        )
    return []


def polars_parquet(table, rng, path):
    import polars as pl

    pl.from_arrow(table).write_parquet(
        path,
        compression=rng.choice(["uncompressed", "snappy", "gzip", "zstd", "lz4"]),
        row_group_size=rng.choice([None, 5, 100]) if table.num_rows < 500 else None,
        statistics=rng.random() < 0.5,
    )
    return []


def polars_arrow(table, rng, path):
    import polars as pl

    pl.from_arrow(table).write_ipc(
        path,
        compression=rng.choice(["uncompressed", "lz4", "zstd"]),
        compat_level=rng.choice([pl.CompatLevel.oldest(), pl.CompatLevel.newest()]),
    )
    return []


def duckdb_parquet(table, rng, path):
    import duckdb

    codec = rng.choice(["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"])
    # Its version 2 has differences of whole numbers that are wider than the numbers, which most readers refuse.
    version = "V1" if any("int" in str(field.type) for field in table.schema) else rng.choice(["V1", "V2"])
    with duckdb.connect() as base:
        base.execute("set timezone = 'UTC'")
        base.register("drawn", table)
        base.execute(f"copy drawn to '{path}' (format parquet, codec {codec}, parquet_version {version})")
    return []


def pandas_parquet(table, rng, path):
    frame = table.to_pandas(types_mapper=arrow_types() if rng.random() < 0.5 else None)
    frame.to_parquet(
        path, compression=rng.choice([None, "snappy", "gzip", "zstd"]), index=rng.choice([None, False, True])
    )
    return []


def pandas_feather(table, rng, path):
    frame = table.to_pandas(types_mapper=arrow_types() if rng.random() < 0.5 else None)
    frame.to_feather(path, compression=rng.choice(["uncompressed", "lz4", "zstd"]))
    return []


def arrow_types():
    import pandas as pd

    return pd.ArrowDtype


def fastparquet_parquet(table, rng, path):
    import fastparquet

    frame = table.to_pandas()
    groups = [0, table.num_rows // 2] if table.num_rows > 2 and rng.random() < 0.5 else None
    fastparquet.write(str(path), frame, compression=rng.choice(["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"]),
                      row_group_offsets=groups, has_nulls=True)  # fmt: skip
    return []


def sign(delimiter):
    return ["--delimiter", "tab" if delimiter == "\t" else delimiter]


def pyarrow_csv(table, rng, path):
    import pyarrow.csv as pc

    delimiter = rng.choice([",", ";", "\t", "|"])
    pc.write_csv(table, path, pc.WriteOptions(delimiter=delimiter))
    return sign(delimiter)


def pandas_csv(table, rng, path):
    delimiter = rng.choice([",", ";", "\t", "|"])
    ending = rng.choice(["\n", "\r\n"])
    table.to_pandas().to_csv(
        path,
        index=False,
        sep=delimiter,
        lineterminator=ending,
        quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    )
    return sign(delimiter)


def polars_csv(table, rng, path):
    import polars as pl

    delimiter = rng.choice([",", ";", "\t", "|"])
    pl.from_arrow(table).write_csv(
        path,
        separator=delimiter,
        line_terminator=rng.choice(["\n", "\r\n"]),
        quote_style=rng.choice(["necessary", "always", "non_numeric"]),
        include_bom=rng.random() < 0.3,
    )
    return sign(delimiter)


def duckdb_csv(table, rng, path):
    import duckdb

    delimiter = rng.choice([",", ";", "|"])
    with duckdb.connect() as base:
        base.execute("set timezone = 'UTC'")
        base.register("drawn", table)
        forced = ", force_quote *" if rng.random() < 0.3 else ""
        base.execute(f"copy drawn to '{path}' (format csv, header, delimiter '{delimiter}'{forced})")
    return sign(delimiter)


def texts(table):
    import cells

    names, kinds, columns = cells.of_table(table)
    return names, [[cells.in_csv(kind, cell) for cell in column] for kind, column in zip(kinds, columns)]


def python_csv(table, rng, path):
    """The standard library's, with all that RFC 4180 allows, packed or with a byte order mark."""
    delimiter = rng.choice([",", ";", "\t", "|"])
    ending = rng.choice(["\n", "\r\n"])
    names, columns = texts(table)
    buffer = io.StringIO(newline="")
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=ending, quoting=quoting)
    writer.writerow(names)
    for row in zip(*columns):
        writer.writerow(["" if cell is None else cell for cell in row])
    text = buffer.getvalue()
    if rng.random() < 0.3 and table.num_rows:
        text = text.removesuffix(ending)
    path.write_bytes((b"\xef\xbb\xbf" if rng.random() < 0.3 else b"") + text.encode())
    return sign(delimiter)


def pandas_json(table, rng, path):
    table.to_pandas().to_json(
        path, orient="records", lines=True, force_ascii=rng.random() < 0.5, date_format="iso"
    )
    return []


def polars_json(table, rng, path):
    import polars as pl

    pl.from_arrow(table).write_ndjson(path)
    return []


def duckdb_json(table, rng, path):
    import duckdb

    with duckdb.connect() as base:
        base.register("drawn", table)
        base.execute(f"copy drawn to '{path}' (format json)")
    return []


def python_json(table, rng, path):
    """Members in any order, missing where they are null."""
    lines = []
    for row in table.to_pylist():
        items = [(name, value) for name, value in row.items() if value is not None or rng.random() < 0.5]
        rng.shuffle(items)
        lines.append(json.dumps(dict(items), ensure_ascii=rng.random() < 0.5, default=str, allow_nan=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return []


def of_sheets(table):
    """Rows of Python's values, without what XML cannot hold."""
    return [table.column_names, *(list(row.values()) for row in table.to_pylist())]


def openpyxl_xlsx(table, rng, path):
    import openpyxl

    book = openpyxl.Workbook(write_only=rng.random() < 0.5)
    sheet = book.create_sheet() if book.write_only else book.active
    for row in of_sheets(table):
        cells = []
        for value in row:
            if isinstance(value, str):
                cell = openpyxl.cell.WriteOnlyCell(sheet, value="x")
                # Text that begins with a sign of equality stays text.
                cell.value, cell.data_type = value, "s"
                value = cell
            cells.append(value)
        sheet.append(cells)
    book.save(path)
    return []


def xlsxwriter_xlsx(table, rng, path):
    import datetime

    import xlsxwriter

    options = {"constant_memory": rng.random() < 0.5, "use_zip64": rng.random() < 0.3}
    with xlsxwriter.Workbook(path, options) as book:
        sheet, day = book.add_worksheet("Data"), book.add_format({"num_format": "yyyy-mm-dd"})
        moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"})
        for at, row in enumerate(of_sheets(table)):
            for place, value in enumerate(row):
                if isinstance(value, datetime.date):
                    sheet.write_datetime(
                        at, place, value, moment if isinstance(value, datetime.datetime) else day
                    )
                elif isinstance(value, str):
                    sheet.write_string(at, place, value)
                elif value is not None:
                    sheet.write(at, place, value)
    return []


def pandas_xlsx(table, rng, path):
    table.to_pandas().to_excel(path, index=False, engine=rng.choice(["openpyxl", "xlsxwriter"]))
    return []


#: Values that a kind of file cannot hold, by kind of column: a filter a kind.
def no_control(text):
    return all(ord(sign) >= 32 for sign in text) and "\ufeff" not in text


def sheet_day(day):
    return (day.year, day.month) >= (1900, 3)


def sheet_moment(micros):
    return -2_203_891_200_000_000 <= micros < 253_402_300_799_000_000 and micros % 1000 == 0


def finite(number):
    return number == number and abs(number) != float("inf")  # noqa: PLR0124


SHEET = {"text": no_control, "category": no_control, "day": sheet_day, "moment_us": sheet_moment,
         "float": lambda number: finite(number) and (number == 0 or 1e-290 < abs(number) < 1e290),
         "int64": lambda number: abs(number) < 10**15}  # fmt: skip
NANOS = {"day64": lambda day: 1700 < day.year < 2200}
for _unit, _count in drawn.UNITS.items():
    for _kind in ("moment", "zoned"):
        NANOS[f"{_kind}_{_unit}"] = lambda count, unit=_count: (
            drawn.NANOS[0] + 90_000 < count // unit < drawn.NANOS[1] - 90_000
        )
# Python's writer of CSV leaves a carriage return without quotes where lines end otherwise, and so splits its own row.
RETURN = dict.fromkeys(("text", "large_text"), lambda text: "\r" not in text)
SHEET_KINDS = ["text", "bool", "float", "day", "moment_us", "int8", "int32", "int64", "uint16"]
JSON_KINDS = ["text", "bool", "int64", "int32", "uint64", "float"]
TWO_READERS = without(FLAT, "day64")

#: Name: (the kind of file, how it is written, the kinds of columns that it takes, values that they are kept to).
WRITERS = {
    "pyarrow: Parquet": ("parquet", pyarrow_parquet, FLAT, {}),
    "pyarrow: Parquet, nested": ("parquet", pyarrow_parquet, [*NESTED, *NESTED, *FLAT], {}),
    "pyarrow: Parquet, 96 bits": ("parquet", pyarrow_int96, ["moment_s", "moment_ms", "moment_us", "text", "int32"], {}),
    "pyarrow: Arrow": ("arrow", pyarrow_arrow, FLAT, {}),
    "pyarrow: Arrow, nested": ("arrow", pyarrow_arrow, [*NESTED, *NESTED, *FLAT], {}),
    "Polars: Parquet": ("parquet", polars_parquet, FLAT, {}),
    "Polars: Parquet, nested": ("parquet", polars_parquet, without([*NESTED, *FLAT], "map"), {}),
    "Polars: Arrow": ("arrow", polars_arrow, without([*NESTED, *FLAT], "map"), {}),
    "DuckDB: Parquet": ("parquet", duckdb_parquet, [*NESTED, *without(FLAT, "category")], {}),
    "pandas: Parquet": ("parquet", pandas_parquet, FLAT, NANOS),
    "pandas: Feather": ("arrow", pandas_feather, without(FLAT, "category"), NANOS),
    "fastparquet: Parquet": ("parquet", fastparquet_parquet, ["text", "bool", "float", "int32", "int64", "uint8", "category"], {}),
    "pyarrow: CSV": ("csv", pyarrow_csv, without(FLAT, "bytes", "fixed_bytes"), {}),
    "pandas: CSV": ("csv", pandas_csv, FLAT, {**NANOS, **RETURN}),
    "Polars: CSV": ("csv", polars_csv, without(SIMPLE), {}),
    "DuckDB: CSV": ("csv", duckdb_csv, without(FLAT, "category"), {}),
    "Python: CSV": ("csv", python_csv, FLAT, RETURN),
    "pandas: JSON lines": ("jsonl", pandas_json, without(JSON_KINDS, "float", "uint64"), {}),
    "Polars: JSON lines": ("jsonl", polars_json, JSON_KINDS, {"float": finite}),
    "DuckDB: JSON lines": ("jsonl", duckdb_json, JSON_KINDS, {"float": finite}),
    "Python: JSON lines": ("jsonl", python_json, JSON_KINDS, {"float": finite}),
    "openpyxl: Excel": ("xlsx", openpyxl_xlsx, SHEET_KINDS, SHEET),
    "xlsxwriter: Excel": ("xlsx", xlsxwriter_xlsx, SHEET_KINDS, SHEET),
    "pandas: Excel": ("xlsx", pandas_xlsx, SHEET_KINDS, SHEET),
}  # fmt: skip
