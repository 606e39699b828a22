#!/usr/bin/env python3
"""The same ugly files through every door that takes a table: `tacit check`, `psi`, `request` against a `serve`, `tags`,
`eval --batch` and Python. One reader serves them all, so what comes out must be the same cells. And every way to say
how a table is written, and where it is, through the command, a service's policy and Python.

Python's part needs the module, which the tests of the package build. Ends with `N passed, N failed`.
"""

import bz2
import csv
import datetime
import decimal
import functools
import http.server
import importlib.util
import json
import lzma
import os
import random
import shutil
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path
from urllib.parse import quote

import suite
from long_tables import TACIT, Source, compare, free_port, intersect
from suite import ROOT

NEEDED = ("pyarrow", "pandas", "polars", "duckdb", "openpyxl")
ROWS = 9
OUTPUTS = ("--output", "--output-rest", "--output-all")
POLICY = """
version = 1
listen = "{address}"
identity = "alice.key"
state = "state"
[peers.bob]
key = "bob.pub"
[sources.customers]
input = "peer.csv"
key = ["k"]
rows_in_total = 1000000
[jobs.match]
source = "customers"
allow = ["bob"]
reveal = ["rows"]
result = ["peer"]
max_peer_keys = 1000
min_peer_keys = 1
runs_a_day = 1000
purpose = "a test"
"""


def ugly(form):
    """A table with what breaks readers, as far as this kind of file holds it."""
    import pyarrow as pa

    plain = form == "xlsx"
    keys = [f'K{at}, "é"' if at % 2 else f"  ключ{at} " for at in range(ROWS)]
    keys[3], keys[5] = keys[1], None
    texts = ["", "00123", "=1+1", "NA", None, "e\u0301", "日本", "a;b|c", "'"]
    if not plain:
        texts[2], texts[7] = 'l1\r\nl2 "q"', "\ufeff\ttab"
    table = {
        "k": pa.array(keys),
        "n": pa.array(range(ROWS), pa.int32()),
        "text, with a comma": pa.array(texts),
    }
    if form != "jsonl":
        first = 1901 if plain else 1
        days = [datetime.date(year, 2, 28) for year in (first, 1970, 9999)] * 3
        table["day"] = pa.array([None, *days[1:]], pa.date32())
        moments = [datetime.datetime(day.year, 3, 4, 5, 6, 7) for day in days]
        table["at"] = pa.array(moments, pa.timestamp("us"))
    if form in ("csv", "parquet", "arrow"):
        table["large"] = pa.array([2**64 - 1, 2**53 + 1, None] * 3, pa.uint64())
        table["d"] = pa.array(
            [decimal.Decimal("-0.10"), None, decimal.Decimal("1.50")] * 3, pa.decimal128(38, 2)
        )
        table["real"] = pa.array([float("nan"), 5e-324, -0.0] * 3)
    if form in ("parquet", "arrow"):
        table["list"] = pa.array([[1, None], [], None] * 3, pa.list_(pa.int64()))
        table["kind"] = pa.array(["a", None, "b,"] * 3).dictionary_encode()
    return pa.table(table)


def written(folder, form):
    """The file, as one of the writers of this kind makes it."""
    import writers
    from pyarrow import ipc

    table, path, rng = ugly(form), folder / f"in.{form}", random.Random(form)
    if form == "parquet":
        writers.pyarrow_parquet(table, rng, path)
    elif form == "arrow":
        with ipc.new_stream(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table, max_chunksize=4)
    elif form == "csv":
        names, columns = writers.texts(table)
        with open(path, "w", encoding="utf-8-sig", newline="") as file:
            rows = csv.writer(file, lineterminator="\r\n")
            rows.writerow(names)
            rows.writerows([["" if cell is None else cell for cell in row] for row in zip(*columns)])
    elif form == "jsonl":
        writers.python_json(table, rng, path)
    else:
        writers.openpyxl_xlsx(table, rng, path)
    return path


#: Rows of the tables below: four, of which one has no key and two have the same.
LINES = "k,n\nann,1\nZoë,2\n,3\nANN,4\n"


def said_ways(folder):
    """(name, places, options of the command, lines of a policy, arguments of `tacit.File`, the key) of tables of LINES."""
    import openpyxl
    import pyarrow as pa
    import pyarrow.parquet as pq

    def file(name, content):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    book = openpyxl.Workbook()
    book.active.append(["not", "this"])
    sheet = book.create_sheet("My Data")
    for at, line in enumerate(LINES.splitlines()):
        for column, cell in enumerate(line.split(",")):
            sheet.cell(at + 3, column + 2, cell or None)
    sheet.cell(9, 3, "below")
    book.save(folder / "book.xlsx")
    book = openpyxl.Workbook()
    for line in LINES.splitlines():
        book.active.append(line.split(",") if line[0] != "," else ["#N/A", "3"])
    book.save(folder / "errors.xlsx")
    columns = {"k": [b"ann", "Zoë".encode(), None, b"ANN"], "n": [1, 2, 3, 4]}
    pq.write_table(pa.table(columns), folder / "bytes.parquet")
    with zipfile.ZipFile(folder / "one.zip", "w") as archive:
        archive.writestr("in.csv", LINES)
    parts = [LINES[: LINES.index(",3")], "k,n\n,3\nANN,4\n"]
    for at, part in enumerate(parts):
        file(f"parts/{at}.csv", part)
    usual = file("usual.csv", LINES)
    many = [str(folder / "parts" / f"{at}.csv") for at in range(2)]
    with sqlite3.connect(folder / "crm.db") as base:
        base.execute("drop table if exists t")
        base.execute("create table t (k text, n text)")
        base.executemany("insert into t values (?, ?)", [line.split(",") for line in LINES.splitlines()[1:]])
    base.close()
    ways = [
        ("encoding", [file("e.csv", LINES.encode("cp1252"))], ["--encoding", "windows-1252"], ['encoding = "windows-1252"'], {"encoding": "windows-1252"}, "k"),
        ("UTF-16", [file("u.csv", LINES.encode("utf-16"))], ["--encoding", "utf-16le"], ['encoding = "utf-16le"'], {"encoding": "utf-16le"}, "k"),
        ("skip-lines", [file("s.csv", 'made "today\n\n' + LINES)], ["--skip-lines", "2"], ["skip_lines = 2"], {"skip_lines": 2}, "k"),
        ("sep=", [file("sep.csv", "sep=|\n" + LINES.replace(",", "|"))], [], [], {}, "k"),
        ("delimiter", [file("d.csv", LINES.replace(",", "^"))], ["--delimiter", "^"], ['delimiter = "^"'], {"delimiter": "^"}, "k"),
        ("null", [file("n.csv", LINES.replace("\n,3", "\nn/a,3"))], ["--null", "NULL,n/a"], ['null = ["NULL", "n/a"]'], {}, "k"),
        ("quote", [file("q.csv", LINES.replace("ann", "'ann'"))], ["--quote", "'"], ['quote = "\'"'], {"quote": "'"}, "k"),
        ("escape", [file("x.csv", LINES.replace("ann", '"a\\nn"'))], ["--escape", "\\"], ["escape = '\\'"], {"escape": "\\"}, "k"),
        ("MySQL", [file("m.txt", LINES[4:].replace("\n,3", "\n\\N,3").replace(",", "\t"))],
         ["--delimiter", "tab", "--quote", "none", "--escape", "\\", "--no-header"],
         ['delimiter = "tab"', 'quote = "none"', "escape = '\\'", "header = false"],
         {"delimiter": "\t", "quote": "none", "escape": "\\", "header": False}, "1"),
        ("sheet and range", [f"{folder}/book.xlsx#My Data!B3:C7"], [], [], {}, "k"),
        ("error cells", [f"{folder}/errors.xlsx"], ["--error-cells", "null"], ['error_cells = "null"'], {"error_cells": "null"}, "k"),
        ("binary as text", [f"{folder}/bytes.parquet"], ["--binary-as-text"], ["binary_as_text = true"], {"binary_as_text": True}, "k"),
        ("JSON lines", [file("j.log", "".join(json.dumps(dict(zip("kn", line.split(",")))) + "\n" for line in LINES.splitlines()[1:]))], [], [], {}, "k"),
        ("zip", [f"{folder}/one.zip"], [], [], {}, "k"),
        ("xz", [file("one.xz", lzma.compress(LINES.encode()))], [], [], {}, "k"),
        ("bzip2", [file("one.bz2", bz2.compress(LINES.encode()))], [], [], {}, "k"),
        ("a folder", [f"{folder}/parts"], [], [], {}, "k"),
        ("a pattern", [f"{folder}/parts/[01].csv"], [], [], {}, "k"),
        ("a list", many, [], [], {}, "k"),
        ("the web", ["http://{web}/" + Path(usual).name], [], [], {}, "k"),
    ]  # fmt: skip
    if importlib.util.find_spec("adbc_driver_sqlite"):
        from test_adbc import library

        driver = library("adbc_driver_sqlite", "libadbc_driver_sqlite*")
        address = f"adbc:{driver}?uri={quote(str(folder / 'crm.db'))}#select k, n from t"
        ways.append(("ADBC", [address], [], [], {}, "k"))
    return ways


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Doors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name in NEEDED if not importlib.util.find_spec(name)]
        if missing:
            raise unittest.SkipTest(f"left out: {', '.join(missing)} not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        for name in ("alice", "bob"):
            subprocess.run(
                [TACIT, "keygen", "--out", f"{name}.key"], check=True, cwd=cls.path, capture_output=True
            )
        cls.theirs = [key.upper() for key in ugly("csv")["k"].to_pylist()[:4]] + ["another"]
        with open(cls.path / "peer.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["k"], *([key] for key in cls.theirs)])

    def sources(self):
        for form in ("csv", "parquet", "arrow", "jsonl", "xlsx"):
            with self.subTest(file=form):
                yield Source(form, written(self.path, form), form, [], self.theirs)

    def outputs(self, source):
        """Files for the three outputs, of a kind each."""
        forms = {
            "csv": ("csv", "parquet", "xlsx"),
            "xlsx": ("xlsx", "csv", "arrow"),
            "jsonl": ("parquet", "csv", "xlsx"),
        }
        forms = forms.get(source.form, ("parquet", "arrow", "parquet"))
        found = {name: self.path / f"out{name}.{form}" for name, form in zip(OUTPUTS, forms)}
        for path in found.values():
            path.unlink(missing_ok=True)
        return found

    def compare_all(self, source, outputs):
        every = range(len(source.matched))
        self.assertEqual(sum(source.matched), 4)
        for name, path in outputs.items():
            rows = [
                row for row in every if name == "--output-all" or source.matched[row] == (name == "--output")
            ]
            more = (
                [("matched", "bool", [str(source.matched[row]).lower() for row in rows])]
                if name == "--output-all"
                else []
            )
            compare(source, path, path.suffix[1:], rows, more)

    def run_both(self, listening, calling, ready=None):
        """Two processes of which the first waits for the second; what the second says."""
        other = subprocess.Popen([TACIT, *map(str, listening)], cwd=self.path, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)  # fmt: skip
        if ready:
            self.assertIn(ready, other.stdout.readline())
        run = subprocess.run(
            [TACIT, *map(str, calling)], check=False, cwd=self.path, capture_output=True, text=True
        )
        if ready or run.returncode:
            other.terminate()
        out, err = other.communicate(timeout=120)
        self.assertEqual((run.returncode, other.returncode), (0, 0), run.stderr + out + err)
        return run.stdout

    def test_check_counts_the_same_in_every_kind_of_file(self):
        for source in self.sources():
            words = [TACIT, "--json", "check", "--input", source.path, "--key", "k"]
            run = subprocess.run(words, check=False, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            said = json.loads(run.stdout.splitlines()[0])
            found = [said[name] for name in ("rows", "keys", "duplicates", "rows_without_key")]
            self.assertEqual(found, [ROWS, ROWS - 2, 1, 1])

    def test_psi(self):
        for source in self.sources():
            outputs = self.outputs(source)
            words = [word for pair in outputs.items() for word in pair]
            intersect(["--input", source.path, *words], ["--input", self.path / "peer.csv"])
            self.compare_all(source, outputs)

    def test_request(self):
        for source in self.sources():
            outputs, address = self.outputs(source), free_port()
            (self.path / "policy.toml").write_text(POLICY.format(address=address))
            words = [
                "request",
                "match",
                "--connect",
                address,
                "--identity",
                "bob.key",
                "--peer",
                "alice.pub",
                "--yes",
            ]
            words += [
                "--input",
                source.path,
                "--key",
                "k",
                *(word for pair in outputs.items() for word in pair),
            ]
            self.run_both(["--json", "serve", "--policy", "policy.toml"], words, ready="started")
            self.compare_all(source, outputs)

    def test_tags(self):
        publish = [
            "tags",
            "publish",
            "--input",
            "peer.csv",
            "--key",
            "k",
            "--out",
            "peer.tags",
            "--private",
            "peer.oprf",
        ]
        subprocess.run(
            [TACIT, *publish, "--identity", "alice.key"], check=True, cwd=self.path, capture_output=True
        )
        for source in self.sources():
            outputs, address = self.outputs(source), free_port()
            serve = ["tags", "serve", "--listen", address, "--identity", "alice.key", "--peer", "bob.pub"]
            query = ["tags", "query", "--connect", address, "--identity", "bob.key", "--peer", "alice.pub"]
            query += ["--tags", "peer.tags", "--input", source.path, "--key", "k"]
            query += [word for pair in outputs.items() for word in pair]
            self.run_both([*serve, "--private", "peer.oprf"], query)
            self.compare_all(source, outputs)

    def test_a_published_table_of_every_kind(self):
        for source in self.sources():
            target = self.path / "ugly.tags"
            for path in (target, self.path / "ugly.oprf"):
                path.unlink(missing_ok=True)
            words = [
                "tags",
                "publish",
                "--input",
                source.path,
                "--key",
                "k",
                "--out",
                target,
                "--private",
                "ugly.oprf",
            ]
            run = subprocess.run([TACIT, "--json", *map(str, words), "--identity", "alice.key"], check=False, cwd=self.path,
                                 capture_output=True, text=True)  # fmt: skip
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(json.loads(run.stdout.splitlines()[-1])["keys"], ROWS - 2)

    def test_a_batch(self):
        for source in self.sources():
            address = free_port()
            common = [
                "eval",
                "add32",
                "--insecure-plaintext",
                "--batch",
                "--input",
                source.path,
                "--columns",
                "n",
            ]
            common += ["--format", "decimal"]
            for form in ("csv", "parquet"):
                if form == "csv" and not source.flat():
                    continue
                target = self.path / f"batch.{form}"
                target.unlink(missing_ok=True)
                ours = [*common, "--listen", address, "--role", "garbler", "--output", target]
                self.run_both(ours, [*common, "--connect", address, "--role", "evaluator"])
                every = range(ROWS)
                kind = "text" if source.form in ("csv", "jsonl", "xlsx") and form == "csv" else "integer"
                compare(source, target, form, every, [("result", kind, [str(2 * row) for row in every])])

    def ways(self):
        """How tables are written and where they are, with a server for one of them."""
        folder = self.path / "ways"
        folder.mkdir(exist_ok=True)
        handler = functools.partial(Quiet, directory=folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            web = f"127.0.0.1:{server.server_port}"
            for name, places, *rest in said_ways(folder):
                with self.subTest(way=name):
                    yield name, [place.replace("{web}", web) for place in places], *rest
            server.shutdown()

    def test_every_way_by_the_command(self):
        for _, places, options, _, _, key in self.ways():
            inputs = [word for place in places for word in ("--input", place)]
            run = subprocess.run([TACIT, "--json", "check", *inputs, *options, "--key", key], check=False, capture_output=True,
                                 text=True)  # fmt: skip
            if "this build" in run.stderr:
                continue
            self.assertEqual(run.returncode, 0, run.stderr)
            said = json.loads(run.stdout.splitlines()[0])
            self.assertEqual([said[name] for name in ("rows", "keys", "rows_without_key")], [4, 2, 1])
            for path in (self.path / "way.tags", self.path / "way.oprf"):
                path.unlink(missing_ok=True)
            words = ["tags", "publish", *inputs, *options, "--key", key, "--out", "way.tags", "--private", "way.oprf"]
            run = subprocess.run([TACIT, "--json", *words, "--identity", "alice.key"], check=False, cwd=self.path,
                                 capture_output=True, text=True)  # fmt: skip
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(json.loads(run.stdout.splitlines()[-1])["keys"], 2)

    def test_every_way_by_an_intersection_a_request_and_a_batch(self):
        (self.path / "way.csv").write_text("k\nZOË\nann\nother\n", encoding="utf-8")
        address = free_port()
        policy = POLICY.format(address=address).replace("peer.csv", "way.csv")
        (self.path / "requests.toml").write_text(policy)
        service = subprocess.Popen([TACIT, "--json", "serve", "--policy", "requests.toml"], cwd=self.path, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        self.addCleanup(service.communicate)
        self.addCleanup(service.terminate)
        self.assertIn("started", service.stdout.readline())
        keys = ["--identity", "bob.key", "--peer", "alice.pub"]
        for name, places, options, _, _, key in self.ways():
            inputs = [word for place in places for word in ("--input", place)]
            table = [*inputs, *options]
            tried = subprocess.run([TACIT, "check", *table, "--key", key], check=False, capture_output=True, text=True)
            if "this build" in tried.stderr:
                continue
            out = self.path / "way-out.csv"
            port, plain = free_port(), ["psi", "--insecure-plaintext"]
            other = [*plain, "--input", "way.csv", "--key", "k", "--listen", port, "--result", "peer"]
            ours = [*plain, *table, "--key", key, "--connect", port, "--output", out, "--overwrite"]
            asks = ["request", "match", "--connect", address, *keys, "--yes", *table, "--key", key, "--output", out, "--overwrite"]
            for call in ("psi", "request"):
                out.unlink(missing_ok=True)
                if call == "psi":
                    self.run_both(other, ours)
                else:
                    run = subprocess.run([TACIT, *map(str, asks)], check=False, cwd=self.path, capture_output=True, text=True)
                    self.assertEqual(run.returncode, 0, f"{name}: {run.stderr}")
                # An output of CSV is UTF-8, one of Parquet keeps its kind whatever it is called.
                rows = [line for line in out.read_text(encoding="utf-8-sig").splitlines() if line]
                self.assertEqual(sum(any(word in row.lower() for word in ("ann", "zoë", "a\\nn")) for row in rows), 3, f"{name}, {call}: {rows}")
            port, column = free_port(), "2" if key == "1" else "n"
            common = ["eval", "add32", "--insecure-plaintext", "--batch", *table, "--columns", column, "--format", "decimal"]
            target = self.path / "way-batch.parquet"
            target.unlink(missing_ok=True)
            self.run_both([*common, "--listen", port, "--role", "garbler", "--output", target],
                          [*common, "--connect", port, "--role", "evaluator"])  # fmt: skip
            import pyarrow.parquet as pq

            self.assertEqual([int(cell) for cell in pq.read_table(target)["result"].to_pylist()], [2, 4, 6, 8], name)

    def test_every_way_by_a_policy(self):
        for _, places, _, lines, _, key in self.ways():
            policy = POLICY.format(address="127.0.0.1:1").replace('key = ["k"]', "\n".join([f'key = ["{key}"]', *lines]))
            inputs = json.dumps(places, ensure_ascii=False) if len(places) > 1 else json.dumps(places[0], ensure_ascii=False)
            policy = policy.replace('input = "peer.csv"', f"input = {inputs}")
            (self.path / "way.toml").write_text(policy, encoding="utf-8")
            run = subprocess.run([TACIT, "serve", "--policy", "way.toml", "--check"], check=False, cwd=self.path, capture_output=True,
                                 text=True)  # fmt: skip
            if "this build" in run.stdout + run.stderr:
                continue
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertIn("has 2 distinct keys in 4 rows today", run.stdout)

    def test_every_way_by_python(self):
        tacit = self.module()
        for name, places, _, _, arguments, key in self.ways():
            if name == "ADBC" and not importlib.util.find_spec("adbc_driver_manager"):
                continue
            file = tacit.File(places if len(places) > 1 else places[0], **arguments)
            nulls = ["NULL", "n/a"] if name == "null" else ()
            try:
                found = tacit.check(file, on=key, null=nulls)
            except tacit.Error as error:
                if "this build" in str(error):
                    continue
                raise
            self.assertEqual((found.rows, found.keys, found.rows_without_key), (4, 2, 1))

    def test_a_table_behind_https(self):
        if not shutil.which("openssl"):
            self.skipTest("left out: there is no openssl to make a certificate")
        folder = self.path / "https"
        folder.mkdir(exist_ok=True)
        (folder / "usual.csv").write_text(LINES, encoding="utf-8")
        own = "subjectAltName=DNS:localhost\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n"
        (folder / "own.ext").write_text(own)
        curve = "ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
        for line in [
            f"req -x509 -newkey {curve} -keyout ca.key -out ca.pem -subj /CN=test -days 2 -addext keyUsage=critical,keyCertSign",
            f"req -newkey {curve} -keyout own.key -out own.csr -subj /CN=localhost",
            "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile own.ext -out own.pem",
        ]:
            subprocess.run(["openssl", *line.split()], check=True, cwd=folder, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "own.pem", folder / "own.key")
        handler = functools.partial(Quiet, directory=folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"https://localhost:{server.server_port}/usual.csv"
            policy = POLICY.format(address="127.0.0.1:1").replace('"peer.csv"', f'"{address}"')
            (self.path / "https.toml").write_text(policy)
            words = [[TACIT, "check", "--input", address, "--key", "k"], [TACIT, "serve", "--policy", "https.toml", "--check"]]
            for call in words:
                for known in (True, False):
                    env = {**os.environ, "SSL_CERT_FILE": str(folder / "ca.pem")} if known else None
                    run = subprocess.run(call, check=False, cwd=self.path, capture_output=True, text=True, env=env)
                    if "this build" in run.stdout + run.stderr:
                        self.skipTest("left out: the command was built without the feature s3")
                    if known:
                        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                        self.assertIn("2 distinct keys", run.stdout)
                    else:
                        self.assertIn("certificate", run.stdout + run.stderr)
                        self.assertNotEqual(run.returncode, 0)
            server.shutdown()

    def test_a_service_and_its_client_with_tables_of_several_files(self):
        folder, address = self.path / "several", free_port()
        folder.mkdir(exist_ok=True)
        for at, lines in enumerate([self.theirs[:2], self.theirs[2:]]):
            with open(folder / f"peer{at}.csv", "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([["k"], *([key] for key in lines)])
        policy = POLICY.format(address=address)
        inputs = 'input = ["several/peer0.csv", "several/peer1.csv"]'
        (self.path / "several.toml").write_text(policy.replace('input = "peer.csv"', inputs))
        names, rows = ["k", "n"], [(key or "", str(at)) for at, key in enumerate(ugly("csv")["k"].to_pylist())]
        for at, part in enumerate([rows[:4], rows[4:]]):
            with open(folder / f"ours{at}.csv", "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([names, *part])
        words = ["request", "match", "--connect", address, "--identity", "bob.key", "--peer", "alice.pub", "--yes"]
        words += ["--input", "several/ours0.csv", "--input", "several/ours1.csv", "--key", "k", "--output", "several/out.csv"]
        words += ["--records", "several/records"]
        self.run_both(["--json", "serve", "--policy", "several.toml"], words, ready="started")
        with open(folder / "out.csv", encoding="utf-8", newline="") as file:
            self.assertEqual([tuple(row) for row in csv.reader(file)], [tuple(names), *rows[:4]])

    def module(self):
        sys.path.insert(0, str(ROOT / "python"))
        try:
            import tacit
        except ImportError:
            self.skipTest("left out: the module for Python is not built (scripts/test_python.py builds it)")
        return tacit

    def test_python(self):
        tacit = self.module()
        import cells
        import pyarrow as pa

        for source in self.sources():
            address = free_port()
            settings = {"on": "k", "result": "peer", "listen": address}
            other = threading.Thread(
                target=tacit.intersect, args=(str(self.path / "peer.csv"),), kwargs=settings
            )
            other.start()
            shared = tacit.intersect(str(source.path), on="k", connect=address, rest=True, all_rows=True)
            other.join()
            counted = tacit.check(str(source.path), on="k")
            self.assertEqual(counted.keys, ROWS - 2)
            for table, wanted in ((shared, True), (shared.rest, False), (shared.all_rows, None)):
                names, _, columns = cells.of_table(pa.table(table))
                rows = [row for row in range(ROWS) if wanted is None or source.matched[row] == wanted]
                self.assertEqual(names, [*source.names, *(["matched"] if wanted is None else [])])
                for at, kind in enumerate(source.kinds):
                    for row, cell in zip(rows, columns[at], strict=True):
                        one, other_cell = source.columns[at][row], cell
                        if kind == "loose":
                            one, other_cell = cells.loose(one), cells.loose(cell)
                        # A CSV file has one cell for nothing and for an empty text.
                        if source.form == "csv":
                            one, other_cell = one or None, other_cell or None
                        self.assertEqual(one, other_cell, f"{source.form}, {names[at]}, row {row}")


if __name__ == "__main__":
    sys.exit(suite.run(Doors, NEEDED))
