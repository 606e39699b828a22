"""Columns that are given, out of tables of every format, against DuckDB's join; and what cannot be given."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars
import pytest
from stores import Said, intersect, run

ROWS = 300


def insured() -> polars.DataFrame:
    """Cells of every type that has a text, nulls among them, and rows without a key."""
    rows = range(ROWS)
    some: Callable[[int, object], object] = lambda row, cell: None if row % 7 == 3 else cell
    day = datetime.date(1999, 12, 1)
    columns: dict[str, tuple[polars.DataType | type[polars.DataType], list[object]]] = {
        "mail": (polars.String, [None if row % 50 == 9 else f"User{row}@Example.com" for row in rows]),
        "cents": (polars.Int32, [some(row, row * 1001 - 70_000) for row in rows]),
        "small": (polars.UInt16, [row for row in rows]),
        "price": (polars.Decimal(12, 2), [some(row, decimal.Decimal(row * 25 - 50) / 100) for row in rows]),
        "whole": (polars.Decimal(12, 2), [some(row, decimal.Decimal(row - 9)) for row in rows]),
        "share": (polars.Float64, [some(row, row / 8) for row in rows]),
        "floats": (polars.Float64, [some(row, float(row - 100)) for row in rows]),
        "day": (polars.Date, [some(row, day + datetime.timedelta(row)) for row in rows]),
        "moment": (
            polars.Datetime("us"),
            [some(row, datetime.datetime(2024, 2, 29, 12, 0, row % 60)) for row in rows],
        ),
        "yes": (polars.Boolean, [some(row, row % 2 == 0) for row in rows]),
        "note": (
            polars.String,
            [some(row, ['said "no, no"', "two\nlines", "Zoë; 東京"][row % 3]) for row in rows],
        ),
        "kind": (polars.Categorical, [some(row, "ABC"[row % 3]) for row in rows]),
        "digits": (polars.String, [some(row, str(row)) for row in rows]),
    }
    frame = polars.DataFrame({name: cells for name, (_, cells) in columns.items()}, strict=False)
    return frame.with_columns(
        polars.Series(name, cells, dtype=kind, strict=False) for name, (kind, cells) in columns.items()
    )


def orders() -> polars.DataFrame:
    """Every third customer has two orders, and half of them are not insured."""
    numbers = [n for n in range(ROWS // 2, ROWS + ROWS // 2) for _ in range(2 if n % 3 == 0 else 1)]
    return polars.DataFrame(
        {
            "email": [f"user{n}@example.com" for n in numbers],
            "order": range(len(numbers)),
            "day": ["x"] * len(numbers),
        }
    )


def write(frame: polars.DataFrame, path: Path) -> None:
    form = path.name.split(".", 1)[1]
    if form == "parquet":
        frame.write_parquet(path, row_group_size=64)
    elif form == "arrow":
        frame.write_ipc(path)
    else:
        duckdb.sql(f"copy (select * from frame) to '{path}' (format csv, header)")


def read(path: Path) -> polars.DataFrame:
    form = path.name.split(".", 1)[1]
    if form == "parquet":
        return polars.read_parquet(path)
    return polars.read_ipc(path) if form == "arrow" else polars.read_csv(path, infer_schema=False)


def text(cell: object) -> str | None:
    """The cell as `docs/formats.md` writes it in a CSV file."""
    match cell:
        case None:
            return None
        case bool():
            return str(cell).lower()
        case datetime.datetime():
            return cell.isoformat()
        case _:
            return str(cell)


def pairs() -> list[tuple[int, int]]:
    """Rows of orders and of the insured with one key, by DuckDB, in the order of orders."""
    ours, theirs = orders().with_row_index("a"), insured().with_row_index("b")
    assert ours.height and theirs.height
    return duckdb.sql(
        "select a, b from ours join theirs on lower(trim(ours.email)) = lower(trim(theirs.mail)) order by a"
    ).fetchall()


GIVEN = ["cents", "small", "price", "share", "day", "moment", "yes", "note", "kind"]


@pytest.mark.parametrize(
    ("theirs", "ours", "out"),
    [
        ("parquet", "parquet", "parquet"),
        ("arrow", "arrow", "arrow"),
        ("parquet", "arrow", "csv"),
        ("arrow", "csv", "csv.gz"),
        ("arrow", "csv", "parquet"),
        ("csv", "parquet", "arrow"),
    ],
)
def test_columns_of_the_other_side_are_those_of_a_join(
    theirs: str, ours: str, out: str, tmp_path: Path
) -> None:
    files = tmp_path / f"insured.{theirs}", tmp_path / f"orders.{ours}", tmp_path / f"both.{out}"
    write(insured(), files[0])
    write(orders(), files[1])
    given, said = intersect(
        [
            "--input",
            str(files[1]),
            "--key",
            "email",
            "--reveal",
            f"payload:{','.join(GIVEN)}",
            "--output",
            str(files[2]),
        ],
        [
            "--input",
            str(files[0]),
            "--key",
            "mail",
            "--reveal",
            "payload",
            "--give",
            ",".join([*GIVEN, "digits"]),
            "--allow-line-ends",
        ],
    )
    assert (given.code, said.code) == (0, 0), (given, said)
    found, expected = read(files[2]), pairs()
    assert json.loads(said.out)["output_rows"] == found.height == len(expected) > 100
    # A column that both have gets a name of its own.
    names = ["peer_day" if name == "day" else name for name in GIVEN]
    assert found.columns == ["email", "order", "day", *names]
    assert [int(order) for order in found["order"]] == [a for a, _ in expected]
    if (ours, out) in [("parquet", "parquet"), ("arrow", "arrow")]:
        assert found.schema["order"] == orders().schema["order"]
    table = insured()
    for name, column in zip(GIVEN, names, strict=True):
        assert out.startswith("csv") or found.schema[column] == polars.String
        cells = [table[name][b] for _, b in expected]
        # A CSV file that DuckDB wrote has its own way of writing points in time.
        wanted = [text(cell) for cell in cells]
        if theirs == "csv" and name == "moment":
            wanted = [cell and cell.replace("T", " ") for cell in wanted]
        assert found[column].to_list() == wanted, name


def number(form: str, column: str, kind: str, tmp_path: Path, *more: str) -> tuple[Said, Said]:
    files = tmp_path / f"insured.{form}", tmp_path / f"orders.{form}"
    write(insured(), files[0])
    write(orders().unique("email"), files[1])
    both = ["--reveal", f"{kind}:{column}", "--security", "semi-honest", *more]
    return intersect(
        ["--input", str(files[1]), "--key", "email", *both],
        ["--input", str(files[0]), "--key", "mail", "--give", column, *both],
    )


@pytest.mark.parametrize(
    ("form", "column"),
    [
        ("parquet", "cents"),
        ("arrow", "small"),
        ("parquet", "whole"),
        ("arrow", "floats"),
        ("parquet", "digits"),
        ("csv", "cents"),
    ],
)
def test_numbers_over_a_column_are_those_of_a_join(form: str, column: str, tmp_path: Path) -> None:
    table = insured()
    cells = [table[column][b] for b in {b for _, b in pairs()}]
    numbers = [int(cell) for cell in cells if cell is not None]
    for kind, expected in [
        ("sum", sum(numbers)),
        ("mean", sum(numbers)),
        ("max", max(numbers)),
        ("min", min(numbers)),
        ("over:150", sum(n > 150 for n in numbers)),
    ]:
        given, said = number(form, column, kind, tmp_path)
        assert (given.code, said.code) == (0, 0), (given, said)
        result = json.loads(said.out)
        name = {"mean": "sum", "over:150": "over"}.get(kind, kind)
        assert result[name] == expected, (kind, result)
        assert kind != "mean" or result["rows"] == len(numbers)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_function_takes_numbers_and_days(form: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / f"ours.{form}", tmp_path / f"theirs.{form}"
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(13 * row) for row in range(100)]
    limits = [row * 7 for row in range(100)]
    names = [f"user{row}@example.com" for row in range(100)]
    write(polars.DataFrame({"k": names[:80], "day": days[:80]}), ours)
    write(
        polars.DataFrame({"k": names[20:], "limit": limits[20:]}, schema_overrides={"limit": polars.Int16}),
        theirs,
    )
    both = [
        "--key",
        "k",
        "--reveal",
        "shares",
        "--eval",
        "lt32",
        "--aggregate",
        "sum",
        "--security",
        "semi-honest",
        "--result-to-owner",
        "--bounds",
        "0..1",
    ]
    _, said = intersect(
        ["--input", str(ours), "--give", "day", *both], ["--input", str(theirs), "--give", "limit", *both]
    )
    assert said.code == 0, said
    common = range(20, 80)
    assert json.loads(said.out)["sum"] == sum(limits[row] < 13 * row for row in common)


def give(path: Path, column: str, *more: str) -> Said:
    return run("psi", "--connect", "127.0.0.1:1", "--connect-timeout", "1", "--insecure-plaintext", "--result", "peer",
               "--input", path, "--key", "k", "--give", column, *more)  # fmt: skip


def test_what_cannot_be_given_is_refused_in_a_line_before_anybody_is_called(tmp_path: Path) -> None:
    for form in ("parquet", "arrow"):
        path = tmp_path / f"odd.{form}"
        odd = polars.DataFrame(
            {
                "k": ["ann", None, "bob"],
                "list": [[1], [2], [3]],
                "pair": [{"a": 1}] * 3,
                "span": [datetime.timedelta(1)] * 3,
                "day": [datetime.date(2024, 1, 1)] * 3,
                "at": [datetime.datetime(2024, 1, 1)] * 3,
                "yes": [True] * 3,
                "raw": [b"secret"] * 3,
                "price": [decimal.Decimal("1.00"), decimal.Decimal("2.50"), decimal.Decimal("77.31")],
                "share": [1.0, 2.5, 77.31],
                "words": ["1", "two", "secret"],
                "large": [1, 2, 2**63 + 7],
            },
            schema_overrides={"large": polars.UInt64, "price": polars.Decimal(9, 2)},
        )
        write(odd, path)
        for column in ("list", "pair", "span"):
            give(path, column, "--reveal", "payload").fails_with(
                3, f"odd.{form}", f"`{column}`", "convert it to text"
            )
        give(path, "nowhere", "--reveal", "payload").fails_with(3, "no column is named `nowhere`")
        semi = ("--security", "semi-honest")
        for column in ("list", "day", "at", "yes", "raw"):
            for kind in ("sum", "max"):
                said = give(path, column, "--reveal", f"{kind}:{column}", *semi)
                said.fails_with(3, f"`{column}`", "convert it to whole numbers")
        # Rows count from 1, and one without a key is not looked at: the second price and share are no numbers.
        for column in ("price", "share", "words", "large"):
            said = give(path, column, "--reveal", f"sum:{column}", *semi)
            said.fails_with(3, f"odd.{form}, row 3: ", "whole number")
            assert "77" not in said.err and "secret" not in said.err, said
        for column in ("pair", "raw", "at"):
            said = give(path, column, "--reveal", "shares", "--eval", "lt32", "--aggregate", "sum", *semi)
            said.fails_with(3, f"`{column}`")
