#!/usr/bin/env python3
"""Compares `docs/audit.md` with the tree: every concern that is closed names a test that is there.

A closing test is written as in the table of `docs/notes/repairs.md`:

    tacit-net: `keys::tests::a_name`, `tls::another`   a Rust test by its crate and its path, or by the path's end
    `tools/models/runs.py`                             a file
    `tools/reference/cheaters.py`: `test_name`         a test in a file of Python
    Repairs 1.1                                        the tests of that point in the other table
    none: the reason                                   there is no test

Several are divided by a semicolon. It fails on

- a closed concern whose last cell is in none of these forms;
- a test, in either table, that the tree does not have;
- a row of another number of cells, or with an empty one, and a way of finding that the page does not explain;
- a point of Repairs without a row of the audit, and a row that names a point which is not there.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AUDIT, REPAIRS = "docs/audit.md", "docs/notes/repairs.md"

TEST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*|//[^\n]*\n\s*)*fn (\w+)")
MODULE = re.compile(r"\bmod (\w+)\s*([{;])")
ELSEWHERE = re.compile(r'#\[path = "([^"]+)"\]\s*(?:pub(?:\([^)]*\))? )?mod (\w+)')
NAME = r"`[a-z0-9_]+(?:::[a-z0-9_]+)*`"
RUST = re.compile(rf"(tacit(?:-[a-z0-9]+)?)(?:, [a-z' -]+)?: ({NAME}(?:, {NAME})*)")
PYTHON = re.compile(r"`((?:tools|scripts|python)/[\w./-]+)`(?:: `(\w+)`)?")
POINT = re.compile(r"(\d\.\d+b?)")
NONE = re.compile(r"none: \S.*")


def rust_tests(root):
    """For each crate and name of a test: the words that the path to it may hold, one set for each such test."""
    found = {}
    for manifest in root.glob("crates/*/Cargo.toml"):
        crate = manifest.parent
        files = {path: path.read_text() for path in [*crate.glob("src/**/*.rs"), *crate.glob("tests/**/*.rs")]}
        # A module that another file declares by a path has its name, and its place, from there.
        renamed = {}
        for path, text in files.items():
            for place, name in ELSEWHERE.findall(text):
                parts = path.relative_to(crate).with_suffix("").parts
                renamed.setdefault((path.parent / place).resolve(), set()).update({*parts, name})
        for path, text in files.items():
            words = {*path.relative_to(crate).with_suffix("").parts, *renamed.get(path.resolve(), ())}
            words |= {name for name, end in MODULE.findall(text) if end == "{"}
            for name in TEST.findall(text):
                found.setdefault((crate.name, name), []).append(words)
    return found


def has_rust(tests, crate, path):
    *modules, name = path.split("::")
    return any(set(modules) <= words for words in tests.get((crate, name), ()))


def rows(text):
    """(section, line, cells) of every row of a table, heads apart; a section is named by the headings above it."""
    section, above = ["", ""], ""
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match(r"(##+) (.*)", line):
            section = [heading[2], ""] if heading[1] == "##" else [section[0], heading[2]]
        if line.startswith("|") and above.startswith("|") and not line.startswith("| ---"):
            yield section[0], number, [cell.strip() for cell in line.strip("|").split("|")]
        above = line


def missing(root, tests, cell):
    """The tests of a cell that are not there, and how many it names."""
    lacking, count = [], 0
    for crate, names in RUST.findall(cell):
        for name in re.findall(r"`([^`]+)`", names):
            count += 1
            if not has_rust(tests, crate, name):
                lacking.append(f"{crate} has no test {name}")
    for file, name in PYTHON.findall(cell):
        count += 1
        path = root / file
        if not path.is_file():
            lacking.append(f"there is no file {file}")
        elif name and not re.search(rf"(?m)^\s*def {name}\b", path.read_text()):
            lacking.append(f"{file} has no test {name}")
    return lacking, count


def is_form(part):
    """Whether a part of the last cell is in one of the forms that the page explains."""
    forms = (RUST.fullmatch(part), PYTHON.fullmatch(part), re.fullmatch(rf"Repairs {POINT.pattern}", part))
    return any(forms)


def check(root):
    """(what is checked, whether it holds) of both tables."""
    checks, tests = [], rust_tests(root)
    points, named = set(), set()
    for _, line, cells in rows((root / REPAIRS).read_text()):
        if found := POINT.match(cells[0]):
            points.add(found[1])
            lacking, _ = missing(root, tests, cells[1])
            checks.append((f"{REPAIRS}:{line}: {', '.join(lacking)}", not lacking))
    text = (root / AUDIT).read_text()
    ways = set()
    for section, line, cells in rows(text):
        if section == "How to read the tables":
            ways |= {word.strip() for word in cells[0].split(",")}
        if section not in ("Open", "Closed"):
            continue
        where = f"{AUDIT}:{line}"
        checks.append((f"{where}: four cells, none of them empty", len(cells) == 4 and all(cells)))
        if section == "Open":
            continue
        checks.append((f"{where}: found by {cells[1]}, which the page does not explain", cells[1] in ways))
        last = cells[-1]
        parts = [] if NONE.fullmatch(last) else last.split("; ")
        for part in parts:
            checks.append((f"{where}: {part} is no test in a form that is known", bool(is_form(part))))
        lacking, _ = missing(root, tests, "" if NONE.fullmatch(last) else last)
        checks.append((f"{where}: {', '.join(lacking)}", not lacking))
        named |= set(re.findall(rf"\bRepairs {POINT.pattern}", last))
    closed = [row for row in rows(text) if row[0] == "Closed"]
    checks.append((f"{AUDIT}: there are closed concerns", bool(closed)))
    for point in sorted(points | named):
        checks.append((f"{AUDIT}: point {point} of {REPAIRS} has a row", point in named))
        checks.append((f"{REPAIRS}: there is no point {point}", point in points))
    return checks


def main():
    checks = check(ROOT)
    passed = sum(holds for _, holds in checks)
    for what, holds in checks:
        if not holds:
            print(f"FAILED {what}")
    print(f"{passed} passed, {len(checks) - passed} failed")
    return 0 if passed and passed == len(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
