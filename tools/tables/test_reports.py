#!/usr/bin/env python3
"""Eleven kinds of fault that users of other readers and writers have reported: each as a file, and what `tacit` makes of it.

A case names a public report of its kind. What is written is read again by at least one other reader. Ends with
`N passed, N failed`.
"""

import csv
import datetime
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import suite
from suite import ROOT

NEEDED = ("pyarrow", "pandas", "openpyxl", "xlsxwriter")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
        if missing:
            raise unittest.SkipTest(f"left out: {', '.join(missing)} not installed")
        cls.tacit = os.environ.get("TACIT", str(ROOT / "target/debug/tacit"))
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)

    def file(self, name, content):
        path = self.path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def through(self, source, target, key="k", more=()):
        """What `tacit psi` writes of all rows of a table, intersected with itself."""
        address = f"127.0.0.1:{free_port()}"
        words = [self.tacit, "psi", "--insecure-plaintext", "--input", source, "--key", key, *more]
        other = subprocess.Popen([*words, "--listen", address, "--result", "peer"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        run = subprocess.run([*words, "--connect", address, "--output", target, "--overwrite"], capture_output=True,
                             text=True)
        out, err = other.communicate(timeout=300)
        self.assertEqual((run.returncode, other.returncode), (0, 0), run.stderr + out + err)
        return target

    def rows(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.reader(file, strict=True))

    def refused(self, source, *words, more=()):
        run = subprocess.run([self.tacit, "check", "--input", source, "--key", "k", *more], capture_output=True, text=True)
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertEqual(len(run.stderr.strip().splitlines()), 1, run.stderr)

    def test_leading_zeros_stay(self):
        """wireservice/csvkit#977: a code that begins with a zero became a number."""
        import openpyxl
        import pyarrow.parquet as pq

        source = self.file("zeros.csv", "k,zip\n00123,02138\n")
        self.assertEqual(pq.read_table(self.through(source, self.path / "zeros.parquet")).to_pylist(),
                         [{"k": "00123", "zip": "02138"}])
        sheet = openpyxl.load_workbook(self.through(source, self.path / "zeros.xlsx")).active
        self.assertEqual([[cell.value for cell in row] for row in sheet], [["k", "zip"], ["00123", "02138"]])

    def test_a_quote_that_is_never_closed_is_an_error(self):
        """osiegmar/FastCSV#173: the rest of a file became one cell."""
        self.refused(self.file("open.csv", 'k,v\n"a,1\nb,2\n'), "open.csv, line 2", "never closed")

    def test_moments_beyond_nanoseconds_are_the_same_moments(self):
        """apache/datafusion#1360: the year 9999 in 96 bits overflowed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        times = [datetime.datetime(9999, 12, 31, 2), datetime.datetime(1, 1, 1)]
        pq.write_table(pa.table({"k": ["a", "b"], "t": pa.array(times, pa.timestamp("us"))}), self.path / "far.parquet",
                       use_deprecated_int96_timestamps=True, store_schema=False)
        found = pq.read_table(self.through(self.path / "far.parquet", self.path / "far-out.parquet"))
        self.assertEqual([moment.replace(tzinfo=None) for moment in found["t"].to_pylist()], times)

    def test_large_whole_numbers_keep_their_digits_in_a_workbook(self):
        """pandas-dev/pandas#24122: numbers of more than fifteen digits were rounded."""
        import openpyxl
        import pyarrow as pa
        import pyarrow.parquet as pq

        numbers = [947_871_269_024_436_488, -(2**63), 999_999_999_999_999]
        pq.write_table(pa.table({"k": ["a", "b", "c"], "n": numbers}), self.path / "large.parquet")
        sheet = openpyxl.load_workbook(self.through(self.path / "large.parquet", self.path / "large.xlsx")).active
        self.assertEqual([int(row[1].value) for row in sheet.iter_rows(min_row=2)], numbers)
        self.assertIsInstance(sheet["B4"].value, int)
        again = self.through(self.path / "large.xlsx", self.path / "large.csv")
        self.assertEqual([int(row[1]) for row in self.rows(again)[1:]], numbers)

    def test_days_of_early_1900_and_of_the_epoch_of_1904_are_the_days_that_excel_shows(self):
        """tidyverse/readxl#148 and tafia/calamine#706: a day off, and four years off."""
        import openpyxl
        from openpyxl.utils.datetime import CALENDAR_MAC_1904

        book = openpyxl.Workbook()
        book.active.append(["k", "day"])
        for row, serial in enumerate([1, 59, 61, 45_351], 2):
            book.active.cell(row, 1, f"r{row}")
            book.active.cell(row, 2, serial).number_format = "yyyy-mm-dd"
        book.save(self.path / "early.xlsx")
        found = self.rows(self.through(self.path / "early.xlsx", self.path / "early.csv"))
        self.assertEqual([row[1] for row in found[1:]], ["1900-01-01", "1900-02-28", "1900-03-01", "2024-02-29"])
        book = openpyxl.Workbook()
        book.epoch = CALENDAR_MAC_1904
        book.active.append(["k", "day"])
        book.active.append(["a", 100])
        book.active["B2"].number_format = "yyyy-mm-dd"
        book.save(self.path / "mac-plain.xlsx")
        # As Excel has written it since 2013: with an extension of the same name behind.
        with zipfile.ZipFile(self.path / "mac-plain.xlsx") as old, zipfile.ZipFile(self.path / "mac.xlsx", "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if name == "xl/workbook.xml":
                    more = (b'<extLst><ext uri="{140A7094-0E35-4892-8432-C4D2E57EDEB5}" xmlns:x15="http://schemas.microsoft'
                            b'.com/office/spreadsheetml/2010/11/main"><x15:workbookPr chartTrackingRefBase="1"/></ext></extLst>')
                    self.assertIn(b"</workbook>", content)
                    content = content.replace(b"</workbook>", more + b"</workbook>")
                new.writestr(name, content)
        for name in ("mac-plain", "mac"):
            found = self.rows(self.through(self.path / f"{name}.xlsx", self.path / f"{name}.csv"))
            self.assertEqual(found[1], ["a", "1904-04-10"], name)

    def test_columns_of_several_files_go_by_their_names(self):
        """hardwood-hq/hardwood#903: a second file's columns were read in the order of the first's."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        folder = self.path / "parts"
        folder.mkdir()
        pq.write_table(pa.table({"k": ["a"], "name": ["Ann"], "city": ["Oslo"]}), folder / "1.parquet")
        pq.write_table(pa.table({"city": ["Rome"], "k": ["b"], "name": ["Bo"]}), folder / "2.parquet")
        found = pq.read_table(self.through(folder, self.path / "parts.parquet")).to_pylist()
        self.assertEqual(found, [{"k": "a", "name": "Ann", "city": "Oslo"}, {"k": "b", "name": "Bo", "city": "Rome"}])

    def test_words_for_nothing_are_text_unless_named(self):
        """pandas-dev/pandas#10647: the text NA became nothing."""
        import pyarrow.parquet as pq

        source = self.file("na.csv", "k,v\nNA,null\nb,N/A\n")
        found = pq.read_table(self.through(source, self.path / "na.parquet")).to_pylist()
        self.assertEqual(found, [{"k": "NA", "v": "null"}, {"k": "b", "v": "N/A"}])
        found = pq.read_table(self.through(source, self.path / "na.parquet", more=["--null", "NA,N/A,null"])).to_pylist()
        self.assertEqual(found, [{"k": "b", "v": None}])

    def test_a_byte_order_mark_is_no_part_of_a_name(self):
        """pandas-dev/pandas#4793: the first column could not be named."""
        source = self.file("mark.csv", '\ufeff"k",v\na,1\n')
        found = self.through(source, self.path / "mark-out.csv")
        self.assertEqual(found.read_bytes(), '\ufeff"k",v\na,1\n'.encode())

    def test_whole_numbers_with_gaps_stay_whole(self):
        """huggingface/datasets#8365: a column with a null became floats, and lost digits."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"k": ["a", "b"], "n": pa.array([9_007_199_254_740_993, None])}), self.path / "gaps.parquet")
        found = self.rows(self.through(self.path / "gaps.parquet", self.path / "gaps.csv"))
        self.assertEqual(found, [["k", "n"], ["a", "9007199254740993"], ["b", ""]])

    def test_text_is_no_formula(self):
        """caxlsx/caxlsx#190: text that begins with a sign became a formula."""
        import openpyxl

        texts = ["=1+1", "@SUM(A1)", "+1", "-1", "{=A1}", "https://example.invalid/"]
        source = self.file("signs.csv", "k,v\n" + "".join(f"r{at},{text}\n" for at, text in enumerate(texts)))
        sheet = openpyxl.load_workbook(self.through(source, self.path / "signs.xlsx")).active
        found = [(row[1].value, row[1].data_type) for row in sheet.iter_rows(min_row=2)]
        # openpyxl calls text with a first sign of equality a formula, whatever the file says: its own bytes say more.
        self.assertEqual([value for value, _ in found], texts)
        with zipfile.ZipFile(self.path / "signs.xlsx") as archive:
            self.assertNotIn(b"<f>", archive.read("xl/worksheets/sheet1.xml"))

    def test_dictionaries_that_differ_go_to_an_arrow_file(self):
        """bmschmidt/quadfeather#3: batches with dictionaries of their own could not be written as one file."""
        import pyarrow as pa
        import pyarrow.feather as feather
        import pyarrow.parquet as pq

        folder = self.path / "categories"
        folder.mkdir()
        for at, values in enumerate([["x", "y"], ["z", "x"]]):
            column = pa.array(values).dictionary_encode()
            pq.write_table(pa.table({"k": [f"{at}a", f"{at}b"], "c": column}), folder / f"{at}.parquet")
        found = feather.read_table(self.through(folder, self.path / "categories.arrow"))
        self.assertEqual(found["c"].to_pylist(), ["x", "y", "z", "x"])


if __name__ == "__main__":
    sys.exit(suite.run(Reports, NEEDED))
