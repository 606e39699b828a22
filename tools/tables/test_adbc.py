#!/usr/bin/env python3
"""Databases by ADBC, for real: what SQLite answers, through `tacit check` and `tacit psi`.

Needs a command that was built with the feature `adbc`, and the packages adbc-driver-sqlite and duckdb, which bring
drivers. Ends with `N passed, N failed`.
"""

import importlib.util
import json
import os
import socket
import sqlite3
import subprocess
import sys
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

    def run_tacit(self, *words):
        return subprocess.run([self.tacit, *map(str, words)], capture_output=True, text=True)

    def through(self, address, target, key="mail", more=()):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = f"127.0.0.1:{one.getsockname()[1]}"
        words = [self.tacit, "psi", "--insecure-plaintext", "--input", address, "--key", key, *more]
        other = subprocess.Popen([*words, "--listen", port, "--result", "peer"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        run = subprocess.run([*words, "--connect", port, "--output", target, "--overwrite"], capture_output=True, text=True)
        out, err = other.communicate(timeout=300)
        self.assertEqual((run.returncode, other.returncode), (0, 0), run.stderr + out + err)
        return Path(target).read_text()

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
            (base, ["behind a #"]),
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
