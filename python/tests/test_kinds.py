"""Files in other encodings, JSON lines, exports of databases, and amounts with a fraction, by way of `tacit.File`."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest
from parties import free_address, party

import tacit

EXCEL = "Export\r\nName;Betrag\r\nZoë;12,50\r\nJosé;7\r\n".encode("windows-1252")


def excel(folder: Path) -> tacit.File:
    path = folder / "kunden.csv"
    path.write_bytes(EXCEL)
    return tacit.File(path, encoding="windows-1252", skip_lines=1, decimal_comma=True)


def test_a_file_says_how_it_is_written(tmp_path: Path) -> None:
    file = excel(tmp_path)
    found = tacit.check(file, on="Name")
    assert (found.rows, found.keys) == (2, 2)
    with pytest.raises(tacit.InputError, match=r"line 3, column 1.*windows-1252"):
        tacit.check(tacit.File(file.path, skip_lines=1), on="Name")
    with pytest.raises(tacit.UsageError, match="klingon"):
        tacit.check(tacit.File(file.path, encoding="klingon"), on="Name")
    outfile = tmp_path / "t.txt"
    outfile.write_bytes(b"1\tann\tx\\\ty\n2\t\\N\tz\n")
    mysql = tacit.File(outfile, delimiter="\t", quote="none", escape="\\", header=False)
    found = tacit.check(mysql, on="2")
    assert (found.rows, found.rows_without_key) == (2, 1)


def test_several_files_are_one_table(tmp_path: Path) -> None:
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    one.write_text("mail,n\nann,1\n,2\n")
    two.write_text("n,mail\n3,bob\n4,ANN\n")
    file = tacit.File([one, str(two)])
    found = tacit.check(file, on="mail")
    assert (found.rows, found.keys, found.rows_without_key, found.duplicate_rows) == (4, 2, 1, 1)
    address = free_address()
    with party('tacit.intersect(["bob"], listen=address, result="peer")', address=address) as child:
        shared = tacit.intersect(file, on="mail", connect=address)
        child.end()
    assert polars.DataFrame(shared).rows() == [("bob", "3")]
    with pytest.raises(tacit.UsageError, match="a file at least"):
        tacit.check(tacit.File([]), on="mail")
    with pytest.raises(tacit.UsageError, match="error_cells"):
        tacit.check(tacit.File(one, error_cells="skip"), on="mail")
    with pytest.raises(tacit.UsageError, match="no path"):
        Path(tacit.File([one, two]))


def test_packed_and_json_lines_are_known_by_content(tmp_path: Path) -> None:
    lines = tmp_path / "t.log"
    lines.write_text('{"mail": "ann", "net": 1.50, "tags": [1]}\n{"mail": "bob", "net": 2}\n')
    assert tacit.check(lines, on="mail").keys == 2
    assert tacit.check(lines, on={"net": "decimal"}).keys == 2
    with pytest.raises(tacit.InputError, match="JSON"):
        tacit.check(lines, on="tags")
    packed = tmp_path / "t.dat"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", "mail\nann\nbob\nANN\n")
    assert tacit.check(packed, on="mail").keys == 2
    (tmp_path / "t.orc").write_bytes(b"ORC\x08\x03\x10\x00")
    with pytest.raises(tacit.InputError, match="an ORC file"):
        tacit.check(tmp_path / "t.orc", on="mail")


@pytest.mark.parametrize("kind", ["file", "frame"])
def test_amounts_are_added_up_in_hundredths(tmp_path: Path, kind: str) -> None:
    table: Any = excel(tmp_path)
    if kind == "frame":
        amounts = polars.Series(["12.50", "7.00"]).cast(polars.Decimal(10, 2))
        table = polars.DataFrame({"Name": ["Zoë", "José"], "Betrag": amounts})
    column, address = "Betrag:decimal2", free_address()
    code = """
    found = tacit.intersect(
        ["zoë", "josé", "x"], connect=address, reveal="sum:" + column, security="semi-honest",
    )
    tell(found.value)
    """
    with party(code, address=address, column=column) as child:
        ours = tacit.intersect(
            table,
            "Name",
            listen=address,
            result="peer",
            reveal=f"sum:{column}",
            give=column,
            security="semi-honest",
        )
        assert (ours.value, child.end()) == (None, [1950])


def test_thresholds_and_bounds_are_in_the_columns_unit(tmp_path: Path) -> None:
    table, address = excel(tmp_path), free_address()
    code = """
    from decimal import Decimal

    def found(reveal, **more):
        return tacit.intersect(
            ["zoë", "josé", "x"], connect=address, reveal=reveal + ":Betrag:decimal2", security="semi-honest", **more
        ).value
    tell(found("over:7"))
    tell(found("max", bounds=(0, Decimal("7.25"))))
    """
    with party(code, address=address) as child:
        for reveal, bounds in [("over:7.00", None), ("max", ("0", "7.25"))]:
            tacit.intersect(
                table,
                "Name",
                listen=address,
                result="peer",
                reveal=f"{reveal}:Betrag:decimal2",
                give="Betrag:decimal2",
                security="semi-honest",
                bounds=bounds,
            )
        assert child.end() == [1, 725]
    with pytest.raises(tacit.UsageError, match="bounds: .*7.255"):
        tacit.intersect(
            ["x"], listen=address, reveal="max:a:decimal2", security="semi-honest", bounds=(0, "7.255")
        )


def test_keys_of_spark_have_the_same_types() -> None:
    """What Spark's tasks call on each batch."""
    from tacit import _tacit

    def digests(types: list[str], *cells: str) -> list[bytes | None]:
        key = _tacit.Key(["k"], types=types)
        batch = pyarrow.record_batch({"k": list(cells)})
        found: list[bytes | None] = pyarrow.array(key.digests(batch)).to_pylist()
        return found

    points, commas = (
        digests(["decimal"], "1.50", "15e-1", "1,5"),
        digests(["decimal:comma"], "1,5", "2", "1.5"),
    )
    assert points[0] == points[1] == commas[0] and points[0] is not None
    assert points[2] is None and commas[2] is None and commas[1] not in (None, points[0])
