"""What several readers say a file holds, cell by cell, in words that do not depend on the reader."""

import csv
import datetime
import decimal
import gzip
import io
import json
import os
import re
import struct
import zipfile
from xml.etree import ElementTree

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def moment(count, unit):
    """A point in time by its count of units since 1970, to the nanosecond; a midnight is a day."""
    seconds, rest = divmod(count * UNITS[unit], 10**9)
    found = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    if rest == 0 and found.time() == datetime.time():
        return found.date().isoformat()
    return found.isoformat() + (f".{rest:09d}".rstrip("0") if rest else "")


def time_of_day(count, unit):
    seconds, rest = divmod(count * UNITS[unit], 10**9)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + (f".{rest:09d}".rstrip("0") if rest else "")


def real(value):
    return "NaN" if value != value else repr(value)  # noqa: PLR0124


def column(array):
    """(kind, cells) of a column of Arrow's."""
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return "text", [None if cell is None else str(cell) for cell in array.to_pylist()]
        return column(array.storage)
    if pa.types.is_dictionary(kind):
        return column(array.dictionary_decode())
    if pa.types.is_timestamp(kind):
        found = [None if n is None else moment(n, kind.unit) for n in array.cast(pa.int64()).to_pylist()]
        return ("zoned" if kind.tz else "moment"), found
    if pa.types.is_time(kind):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return "time", [
            None if n is None else time_of_day(n, kind.unit) for n in array.cast(whole).to_pylist()
        ]
    if pa.types.is_date(kind):
        return "day", [None if day is None else day.isoformat() for day in array.to_pylist()]
    if pa.types.is_floating(kind):
        name = "real" if kind.bit_width == 64 else "single"
        return name, [None if n is None else real(float(n)) for n in array.to_pylist()]
    if pa.types.is_decimal(kind):
        return "decimal", [None if n is None else format(n, "f") for n in array.to_pylist()]
    if pa.types.is_struct(kind):
        fields = [column(array.field(at))[1] for at in range(kind.num_fields)]
        rows = zip(*fields) if fields else [()] * len(array)
        return "nested", [row if good else None for row, good in zip(rows, array.is_valid().to_pylist())]
    if pa.types.is_nested(kind):
        cells = [None if not cell.is_valid else column(cell.values)[1] for cell in array]
        return "nested", cells
    found = array.to_pylist()
    if pa.types.is_boolean(kind):
        return "bool", [None if cell is None else str(cell).lower() for cell in found]
    if pa.types.is_integer(kind):
        return "integer", [None if cell is None else str(cell) for cell in found]
    if found and any(isinstance(cell, bytes) for cell in found):
        return "bytes", [None if cell is None else cell.hex() for cell in found]
    return "text", found


def of_table(table):
    """(names, kinds, columns) of a table of Arrow's."""
    found = [column(each) for each in table.columns]
    return table.column_names, [kind for kind, _ in found], [cells for _, cells in found]


def arrow_file(path):
    """A file or a stream of Arrow's."""
    from pyarrow import ipc

    return (ipc.open_file if path.read_bytes()[:6] == b"ARROW1" else ipc.open_stream)(path)


def by_pyarrow(path):
    import pyarrow.parquet as pq

    if path.suffix == ".parquet":
        return of_table(pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read())
    with arrow_file(path) as file:
        return of_table(file.read_all())


def by_polars(path):
    # Polars knows no zones by their distance from UTC, and can be told to keep them.
    os.environ["POLARS_IGNORE_TIMEZONE_PARSE_ERROR"] = "1"
    import polars as pl

    if path.suffix == ".parquet":
        return of_table(pl.read_parquet(path, glob=False, hive_partitioning=False).to_arrow())
    read = pl.read_ipc if path.read_bytes()[:6] == b"ARROW1" else pl.read_ipc_stream
    return of_table(read(path).to_arrow())


def by_duckdb(path):
    import duckdb

    with duckdb.connect() as base:
        base.execute("set timezone = 'UTC'")
        name = str(path).replace("'", "''")
        answer = base.sql(f"select * from read_parquet('{name}')")
        names = answer.columns
        return names, *of_table(answer.to_arrow_table())[1:]


def delimiter_of(path):
    first = path.read_bytes().split(b"\n")[0].split(b"\r")[0]
    return max(",;\t|", key=lambda sign: first.count(sign.encode()))


def by_csv(path, delimiter=","):
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    rows = [row for row in rows if row]
    return rows[0], [list(column) for column in zip(*rows[1:])] or [[] for _ in rows[0]]


def by_pyarrow_csv(path, delimiter=",", empty_is_null=True):
    import pyarrow.csv as pc

    parse = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    read = pc.ReadOptions(block_size=1 << 24)
    names = pc.open_csv(path, read_options=read, parse_options=parse).schema.names
    convert = pc.ConvertOptions(
        column_types=dict.fromkeys(names, "string"),
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=empty_is_null,
    )
    found = pc.read_csv(path, read_options=read, parse_options=parse, convert_options=convert)
    return names, [each.to_pylist() for each in found.columns]


SHEETS = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def date_styles(archive):
    """Whether each style of a workbook shows a number as a date."""
    styles = ElementTree.fromstring(archive.read("xl/styles.xml"))
    own = {one.get("numFmtId"): one.get("formatCode") for one in styles.iter(f"{SHEETS}numFmt")}
    formats = styles.find(f"{SHEETS}cellXfs")
    numbers = [one.get("numFmtId", "0") for one in formats] if formats is not None else []
    return [14 <= int(number) <= 22 or "yy" in own.get(number, "").lower() for number in numbers]


def of_xml(cell, shared, dates):
    value, kind = cell.find(f"{SHEETS}v"), cell.get("t", "n")
    if kind == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{SHEETS}t"))
    if value is None or value.text is None:
        return None
    if kind == "s":
        return shared[int(value.text)]
    if kind == "b":
        return value.text == "1"
    if kind in ("str", "e", "d"):
        return value.text
    if dates and dates[int(cell.get("s", "0"))]:
        thousandths = round(decimal.Decimal(value.text) * 86_400_000)
        return datetime.datetime(1899, 12, 30) + datetime.timedelta(milliseconds=thousandths)
    return int(value.text) if re.fullmatch(r"-?\d+", value.text) else float(value.text)


def by_xml(path):
    """A workbook by its own XML: the first sheet's cells. Rows without a cell are left out."""
    with zipfile.ZipFile(path) as archive:
        shared, dates = [], date_styles(archive)
        if "xl/sharedStrings.xml" in archive.namelist():
            for item in ElementTree.fromstring(archive.read("xl/sharedStrings.xml")).iter(f"{SHEETS}si"):
                shared.append("".join(text.text or "" for text in item.iter(f"{SHEETS}t")))
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    rows = []
    for row in sheet.iter(f"{SHEETS}row"):
        cells = {}
        for cell in row.iter(f"{SHEETS}c"):
            at = 0
            for letter in re.match("[A-Z]+", cell.get("r"))[0]:
                at = at * 26 + ord(letter) - 64
            cells[at - 1] = of_xml(cell, shared, dates)
        if any(cell not in (None, "") for cell in cells.values()):
            rows.append(cells)
    width = max(rows[0]) + 1
    names = [escaped(rows[0].get(at)) for at in range(width)]
    return names, [[escaped(row.get(at)) for row in rows[1:]] for at in range(width)]


def escaped(text):
    """Excel writes signs that XML lacks as `_x000D_`."""
    if not isinstance(text, str):
        return text
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text)


def by_openpyxl(path):
    import openpyxl

    rows = [list(row) for row in openpyxl.load_workbook(path, data_only=True).active.values]
    rows = [[escaped(cell) for cell in row] for row in rows if any(cell not in (None, "") for cell in row)]
    return rows[0], [list(column) for column in zip(*rows[1:])] or [[] for _ in rows[0]]


def in_csv(kind, cell):
    """The text of a cell of columns in a CSV file, as the page on formats says; nothing is nothing."""
    if cell is None:
        return None
    if kind in ("moment", "zoned"):
        text = cell if "T" in cell else f"{cell}T00:00:00"
        return text + ("Z" if kind == "zoned" else "")
    return cell


def same_in_csv(kind, cell, found):
    """Whether the text in a CSV file is this cell."""
    wanted = in_csv(kind, cell)
    if wanted is None or found is None:
        return (wanted or None) == (found or None)
    if kind in ("real", "single"):
        try:
            number = float(found)
        except ValueError:
            return False
        if kind == "single" and number == number and abs(number) != float("inf"):  # noqa: PLR0124
            number = struct.unpack("f", struct.pack("f", number))[0]
        return real(number) == wanted
    if kind in ("moment", "zoned", "time") and "." in found:
        # A fraction has three, six or nine digits.
        found, end = found.removesuffix("Z").rstrip("0"), "Z" if found.endswith("Z") else ""
        found += end
    return found == wanted


def same_in_a_sheet(kind, cell, found):
    """Whether a cell of a workbook, by whichever reader, is this one."""
    wanted = in_csv(kind, cell)
    if found in (None, "") or wanted in (None, ""):
        return (wanted or None) == (found or None)
    if isinstance(found, str):
        found = found.replace("\r\n", "\n").replace("\r", "\n")
        return found == wanted.replace("\r\n", "\n").replace("\r", "\n") or same_in_csv(kind, cell, found)
    if isinstance(found, bool):
        return kind == "bool" and wanted == str(found).lower()
    if isinstance(found, datetime.datetime):
        return kind in ("day", "moment") and found == datetime.datetime.fromisoformat(cell)
    if kind in ("real", "single"):
        return same_in_csv(kind, cell, str(found)) or float(found) == float(wanted)
    return kind in ("integer", "decimal") and decimal.Decimal(str(found)) == decimal.Decimal(wanted)


def loose(value):
    """A cell of a sheet or of JSON, whose types tell less: numbers by their worth, the rest as text."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        # A workbook's days are numbers with a fraction, which readers round.
        return moment_text((value + datetime.timedelta(microseconds=500)).isoformat(timespec="milliseconds"))
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (dict, list)):
        return json.dumps(value, sort_keys=True, default=str)
    text = str(value)
    if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", text):
        number = decimal.Decimal(text)
        return format(number.normalize(decimal.Context(prec=400)), "f") if number else "0"
    if re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?", text):
        return moment_text(text)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def moment_text(text):
    text = text.replace(" ", "T")
    head, _, rest = text.partition(".")
    rest = rest.rstrip("0")
    return head[:10] if head.endswith("T00:00:00") and not rest else head + (f".{rest}" if rest else "")
