#!/usr/bin/env python3
"""Databases by ADBC, for real: what SQLite and DuckDB answer, through `tacit check` and `tacit psi`.

Needs a command that was built with the feature `adbc`, and the packages adbc-driver-sqlite and duckdb, which bring
drivers. DuckDB's wheel has its driver in a module of Python's, for which Python's own library is loaded before it;
DUCKDB_DRIVER may name a libduckdb, which needs nothing. Ends with `N passed, N failed`.
"""

import importlib.util
import json
import os
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import unittest
from pathlib import Path
from urllib.parse import quote

import suite
from suite import ROOT

NEEDED = ("adbc_driver_sqlite", "duckdb")


def library(package, pattern):
    """The shared library that a package brings."""
    folder = Path(importlib.util.find_spec(package).origin).parent
    found = [path for path in (*folder.glob(pattern), *folder.parent.glob(pattern)) if path.is_file()]
    return str(found[0]) if found else None


class Adbc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tacit = os.environ.get("TACIT", str(ROOT / "target/debug/tacit"))
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        said = subprocess.run([cls.tacit, "check", "--input", "adbc:none#select 1", "--key", "k"], capture_output=True, text=True)
        if "this build" in said.stderr:
            raise unittest.SkipTest("left out: the command was built without the feature adbc")

    def driver(self, package, pattern):
        if not importlib.util.find_spec(package):
            self.skipTest(f"left out: {package} not installed")
        found = library(package, pattern)
        self.assertIsNotNone(found, f"{package} brings no library")
        return found

    def run_tacit(self, *words, env=None):
        return subprocess.run([self.tacit, *map(str, words)], capture_output=True, text=True, env=env)

    def through(self, address, target, key="mail", more=(), env=None):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = f"127.0.0.1:{one.getsockname()[1]}"
        words = [self.tacit, "psi", "--insecure-plaintext", "--input", address, "--key", key, *more]
        other = subprocess.Popen([*words, "--listen", port, "--result", "peer"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=env)
        run = subprocess.run([*words, "--connect", port, "--output", target, "--overwrite"], capture_output=True, text=True, env=env)
        out, err = other.communicate(timeout=300)
        self.assertEqual((run.returncode, other.returncode), (0, 0), run.stderr + out + err)
        return Path(target).read_bytes().decode() if str(target).endswith(".csv") else None

    def sqlite(self):
        driver = self.driver("adbc_driver_sqlite", "libadbc_driver_sqlite*")
        file = self.path / "crm.db"
        if not file.exists():
            with sqlite3.connect(file) as base:
                base.execute("create table people (mail text, n integer, x real)")
                rows = [("a@x.org", 1, 0.5), ("b@x.org", None, 1.0), (None, 3, None), ("a@x.org", 4, 2.5)]
                base.executemany("insert into people values (?, ?, ?)", rows)
        return f"adbc:{driver}?uri={quote(str(file))}"

    def test_sqlite_answers_once_and_rows_go_everywhere(self):
        address = self.sqlite() + "#select mail, n, x from people order by n is null, n; "
        said = self.run_tacit("--json", "check", "--input", address, "--key", "mail:email")
        self.assertEqual(said.returncode, 0, said.stderr)
        found = json.loads(said.stdout)
        self.assertEqual([found[name] for name in ("rows", "keys", "duplicates", "rows_without_key")], [4, 2, 1, 1])
        self.assertTrue(found["file"].startswith("adbc:") and "people" not in found["file"] and "uri" not in found["file"])
        text = self.through(address, self.path / "out.csv")
        self.assertEqual(text, "mail,n,x\na@x.org,1,0.5\na@x.org,4,2.5\nb@x.org,,1.0\n")

    def duckdb(self):
        """The address of a file of DuckDB's, without a query, and the environment in which its driver can be loaded."""
        import duckdb

        if named := os.environ.get("DUCKDB_DRIVER"):
            driver, env = named, None
        else:
            driver = self.driver("duckdb", "_duckdb*.so")
            folder, name = (sysconfig.get_config_var(key) for key in ("LIBDIR", "INSTSONAME"))
            python = Path(folder or "", name or "")
            if not python.is_file() or ".so" not in python.name:
                self.skipTest("left out: this Python has no library of its own, which DuckDB's wheel needs")
            env = {**os.environ, "LD_PRELOAD": str(python)}
        file = self.path / "crm.duckdb"
        if not file.exists():
            with duckdb.connect() as base:
                # A form that older drivers read too.
                base.execute(f"attach '{file}' as crm (storage_version 'v1.2.0')")
                base.execute("create type crm.plan as enum ('basic', 'plus')")
                base.execute("""create table crm.people (mail text, n bigint, x double, d decimal(18, 2), day date, moment timestamp,
                    tz timestamptz, t time, ok boolean, u uuid, plan crm.plan, h hugeint, tags text[])""")
                base.execute("""insert into crm.people values
                    ('a@x.org', 9223372036854775807, 0.1, -1.50, '0001-01-01', '9999-12-31 23:59:59.999999',
                     '2024-01-31 12:00:00+00', '12:30:00.5', true, '10111213-1415-1617-1819-1a1b1c1d1e1f', 'plus',
                     170141183460469231731687303715884105727, ['x', null]),
                    ('b@x.org', null, null, null, null, null, null, null, null, null, null, null, null),
                    (null, 3, 'nan', 2, '2024-02-29', '1970-01-01', null, null, false, null, 'basic', 5, []),
                    ('A@x.org ', 4, 2.5, 123456.70, '9999-12-31', '1677-01-01', null, null, true, null, 'plus', -5, ['y'])""")
        return f"adbc:{driver}?entrypoint=duckdb_adbc_init&path={quote(str(file))}&access_mode=read_only", env

    def test_duckdb_answers_and_no_cell_is_another(self):
        import pyarrow.parquet as pq

        base, env = self.duckdb()
        flat = "#select mail, n, x, d, day, moment, tz, t, ok, u, plan from people order by n desc nulls last"
        said = self.run_tacit("--json", "check", "--input", base + flat, "--key", "mail:email", env=env)
        self.assertEqual(said.returncode, 0, said.stderr)
        found = json.loads(said.stdout)
        self.assertEqual([found[name] for name in ("rows", "keys", "duplicates", "rows_without_key")], [4, 2, 1, 1])
        self.assertTrue("people" not in found["file"] and "crm" not in found["file"])
        text = self.through(base + flat, self.path / "duck.csv", env=env)
        self.assertEqual(text, "mail,n,x,d,day,moment,tz,t,ok,u,plan\n"
                         "a@x.org,9223372036854775807,0.1,-1.50,0001-01-01,9999-12-31T23:59:59.999999,"
                         "2024-01-31T12:00:00Z,12:30:00.500,true,10111213-1415-1617-1819-1a1b1c1d1e1f,plus\n"
                         "A@x.org ,4,2.5,123456.70,9999-12-31,1677-01-01T00:00:00,,,true,,plus\n"
                         "b@x.org,,,,,,,,,,\n")  # fmt: skip
        # Lists and numbers of 39 digits have a place in Parquet, and none in CSV.
        target = self.path / "duck.parquet"
        self.through(base + "#select mail, h, tags, d from people", target, env=env)
        rows = pq.read_table(target).to_pydict()
        self.assertEqual(rows["tags"], [["x", None], None, ["y"]])
        self.assertEqual([str(cell) for cell in rows["d"]], ["-1.50", "None", "123456.70"])
        for query, key, word in [("#select mail, h from people", "h", "row 1"), ("#select mail, tags from people", "tags", "tags")]:
            said = self.run_tacit("check", "--input", base + query, "--key", key, env=env)
            self.assertEqual(said.returncode, 3, said.stdout + said.stderr)
            self.assertIn(word, said.stderr)
            self.assertNotIn("17014", said.stderr)

    def test_a_refusal_of_duckdb_is_a_line_without_secrets(self):
        base, env = self.duckdb()
        for address in (base + "#select nothing from people", base.replace("crm.duckdb", "hunter2.duckdb") + "#from people"):
            said = self.run_tacit("check", "--input", address, "--key", "mail", env=env)
            self.assertEqual(said.returncode, 3, said.stdout + said.stderr)
            self.assertEqual(len(said.stderr.strip().splitlines()), 1, said.stderr)
            self.assertIn("the driver refuses", said.stderr)
            self.assertNotIn("hunter2", said.stderr)

    def test_a_driver_that_the_system_cannot_load_is_a_line(self):
        # The wheel of DuckDB has its driver in a module of Python's, which lacks Python's symbols here.
        driver = self.driver("duckdb", "_duckdb*.so")
        address = f"adbc:{driver}?entrypoint=duckdb_adbc_init&path=hunter2.duckdb#from people"
        said = self.run_tacit("check", "--input", address, "--key", "mail")
        self.assertEqual(said.returncode, 3, said.stdout + said.stderr)
        self.assertEqual(len(said.stderr.strip().splitlines()), 1, said.stderr)
        self.assertIn("dynamic library", said.stderr)
        self.assertNotIn("hunter2", said.stderr)

    def test_a_refusal_is_a_line_without_secrets(self):
        base = self.sqlite()
        for address, words in [
            (base + "#select nothing from people", ["the driver refuses", "nothing"]),
            (base, ["after a #"]),
            (base + "#", ["no query"]),
            ("adbc:?uri=hunter2#select 1", ["no driver"]),
            ("adbc:adbc_driver_that_is_not_there?password=hunter2#select 1", ["adbc_driver_that_is_not_there"]),
            ("adbc:" + base.split("?")[0][5:] + "?uri=/nowhere/hunter2.db#select 1", ["the driver refuses"]),
        ]:
            said = self.run_tacit("check", "--input", address, "--key", "mail")
            self.assertIn(said.returncode, (2, 3), said.stdout + said.stderr)
            self.assertEqual(len(said.stderr.strip().splitlines()), 1, said.stderr)
            for word in words:
                self.assertIn(word, said.stderr)
            self.assertNotIn("hunter2", said.stderr)


if __name__ == "__main__":
    sys.exit(suite.run(Adbc, NEEDED))
