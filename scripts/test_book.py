#!/usr/bin/env python3
"""The book's examples, run as they stand, and its pictures.

In *start*, *use* and *deploy*, a `console` block holds commands behind `alice$` and `bob$`, each in a folder of
its own; those of one block run at the same time. The lines under a command are lines of its output, in that
order, where `…` stands for anything. A block with a title is a file of the party named there, and a comment `FILE
goes to NAME` copies one. Each page starts afresh, with two pairs of keys already exchanged (but for *start*).

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PARTIES = ("alice", "bob")
# Seconds that one block may take.
DEADLINE = 60
PIECE = re.compile(
    r'(?ms)^```\w+ title="(?P<who>\w+): (?P<file>[\w.-]+)"\n(?P<content>.*?)^```$'
    r"|^```console\n(?P<block>.*?)^```$"
    r"|^<!-- (?P<sent>[\w.-]+) goes to (?P<to>\w+) -->$"
)
# Where the pages say that Alice listens.
ADDRESS = re.compile(r"\b(?:0\.0\.0\.0|127\.0\.0\.1|alice\.example):7700\b")


def commands(block):
    """(party, command, lines expected of it) of each command of a block."""
    found, open_line = [], False
    for line in block.splitlines():
        begin = re.match(r"(\w+)\$ +(.*)", line)
        if open_line:
            found[-1][1] += "\n" + line
        elif begin:
            found.append([begin[1], begin[2], []])
        else:
            found[-1][2].append(line)
        open_line = (open_line or bool(begin)) and line.endswith("\\")
    return found


def missing(expected, output):
    """The first expected line that the output does not have, in order, or None."""
    lines = iter(output.splitlines())
    for line in expected:
        pattern = ".*".join(re.escape(part) for part in line.split("…"))
        if not any(re.fullmatch(pattern, other) for other in lines):
            return line
    return None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Machines:
    """A folder for each party, and the command on the path."""

    def __init__(self, folder):
        self.folder = Path(folder)
        for party in PARTIES:
            (self.folder / party).mkdir()
        tacit = Path(os.environ.get("TACIT", ROOT / "target/debug/tacit"))
        if not tacit.exists():
            raise unittest.TestCase.failureException(f"{tacit} is not there: cargo build makes it")
        self.env = {**os.environ, "PATH": f"{tacit.parent}{os.pathsep}{os.environ['PATH']}"}

        self.port = free_port()

    def located(self, text):
        """The text with a free port of this one machine, where the pages have two machines."""
        return ADDRESS.sub(f"127.0.0.1:{self.port}", text)

    def run(self, block):
        """Runs a block's commands side by side; returns what is wrong, in words."""
        runs, wrong = [], []
        for party, command, expected in commands(block):
            here = self.located(command)
            run = subprocess.Popen(
                ["bash", "-c", here], cwd=self.folder / party, env=self.env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            runs.append((party, command, expected, run))
        for party, command, expected, run in runs:
            try:
                output, errors = run.communicate(timeout=DEADLINE)
            except subprocess.TimeoutExpired:
                run.kill()
                output, errors = run.communicate()
            line = missing(expected, output)
            if run.returncode != 0 or line is not None:
                lacking = f"\nno line: {line}" if line is not None else ""
                wrong.append(f"{party}$ {command}\nexit code {run.returncode}{lacking}\n{output}{errors}")
        return wrong

    def exchange_keys(self):
        for party in PARTIES:
            subprocess.run(
                ["tacit", "keygen", "--out", f"{party}.key"],
                cwd=self.folder / party, env=self.env, check=True, capture_output=True,
            )
            for other in PARTIES:
                if other != party:
                    shutil.copy(self.folder / party / f"{party}.pub", self.folder / other)

    def follow(self, page):
        """Does what a page shows; returns how many commands it ran, and what is wrong."""
        count, wrong = 0, []
        for piece in PIECE.finditer(page):
            if piece["block"]:
                count += len(commands(piece["block"]))
                wrong += self.run(piece["block"])
            elif piece["who"]:
                (self.folder / piece["who"] / piece["file"]).write_text(self.located(piece["content"]))
            else:
                holder = next(party for party in PARTIES if party != piece["to"])
                shutil.copy(self.folder / holder / piece["sent"], self.folder / piece["to"])
        return count, wrong


class Examples(unittest.TestCase):
    def follow(self, name, keys=True):
        with tempfile.TemporaryDirectory() as folder:
            machines = Machines(folder)
            if keys:
                machines.exchange_keys()
            count, wrong = machines.follow((DOCS / name).read_text())
            self.assertEqual(wrong, [])
            return count

    def test_start(self):
        self.assertGreaterEqual(self.follow("start.md", keys=False), 6)

    def test_deploy(self):
        self.assertEqual(self.follow("deploy.md"), 4)

    def test_every_page_of_use(self):
        pages = sorted((DOCS / "use").glob("*.md"))
        ran = {page.name: self.follow(f"use/{page.name}") for page in pages}
        # What the page for people shows has tests of its own, in browsers (`test_ui.py`).
        without = {"README.md", "page.md"}
        self.assertGreater(min(count for name, count in ran.items() if name not in without), 1, ran)


class TheFollower(unittest.TestCase):
    def test_a_command_that_fails_or_says_something_else_is_found(self):
        page = "```console\nalice$ echo one; echo three\n{}\n```\n"
        for line, right in (("one", True), ("…ee", True), ("two", False), ("three\none", False)):
            with self.subTest(line=line), tempfile.TemporaryDirectory() as folder:
                count, wrong = Machines(folder).follow(page.format(line))
                self.assertEqual((count, not wrong), (1, right), wrong)
        with tempfile.TemporaryDirectory() as folder:
            _, wrong = Machines(folder).follow("```console\nbob$ tacit psi\n```\n")
            self.assertIn("exit code 2", wrong[0])


class TheChecker(unittest.TestCase):
    """`tools/book/check.py`, on made-up books."""

    def wrong(self, body, style=""):
        with tempfile.TemporaryDirectory() as folder:
            pages = {"index.html": f"<h1 id='top'>One</h1>{body}", "use/more.html": "<a href='../index.html#top'>up</a>"}
            for name, text in {**pages, "book.css": style}.items():
                (Path(folder) / name).parent.mkdir(exist_ok=True)
                (Path(folder) / name).write_text(text)
            script = ROOT / "tools/book/check.py"
            run = subprocess.run([sys.executable, script, folder], capture_output=True, text=True)
            found = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
            self.assertEqual(run.returncode, int(bool(found)), run.stdout + run.stderr)
            return found

    def test_a_sound_book_passes(self):
        body = (
            "<a href='use/more.html'>a</a><a href='#top'>b</a><a href='https://example.com/'>c</a>"
            "<link rel='stylesheet' href='book.css'>"
        )
        self.assertEqual(self.wrong(body, "a { background: url(data:image/png;base64,AA) }"), [])

    def test_whatever_leads_nowhere_or_is_loaded_from_elsewhere_is_found(self):
        for body in (
            "<a href='use/less.html'>a</a>",
            "<a href='use/more.html#nowhere'>a</a>",
            "<a href='#nowhere'>a</a>",
            "<img src='picture.svg'>",
            "<img src='https://example.com/picture.svg'>",
            "<script src='//example.com/a.js'></script>",
            "<link rel='stylesheet' href='https://example.com/font.css'>",
        ):
            with self.subTest(body=body):
                self.assertEqual(len(self.wrong(body)), 1)
        for style in ('@import "https://example.com/a.css";', "a { src: url('//example.com/font.woff') }"):
            with self.subTest(style=style):
                self.assertEqual(len(self.wrong("", style)), 1)


class Pictures(unittest.TestCase):
    def test_they_are_what_the_script_draws(self):
        script = ROOT / "tools/book/pictures.py"
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, script, folder], check=True)
            drawn = {path.name: path.read_text() for path in Path(folder).iterdir()}
        kept = {path.name: path.read_text() for path in (DOCS / "pictures").iterdir()}
        self.assertEqual(kept, drawn, f"{script} draws them again")
        used = " ".join(page.read_text() for page in DOCS.rglob("*.md"))
        self.assertEqual([name for name in kept if f"pictures/{name})" not in used], [])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
