#!/usr/bin/env python3
"""Ties the pages of `docs/proofs/` to the code and to the tests.

A page numbers what it claims: `**2.5 check**` or `**6.3 A session.**`, in bold, at the section of that number. In the
section whose heading begins with `Steps`, each number is a step of the protocol; anywhere, the word `check` behind a
number marks what an honest party verifies, and `bound` a number that the code computes or was chosen by.

    // proof: kos 2.5, 2.6      in a source: what follows is the code of these steps
    /// proof: kos 2.6           in the documentation of a Rust test, or `proof: kos 2.6` in a Python file of `tools/`

It fails on

- a step, a check or a bound that no source has a marker of;
- a check that no test has a marker of: a cheater that it catches;
- a marker of a number that its page does not have, or of a page that is not there;
- a marker of a source's form in a file of tests, and one of a test's form before something else than a test;
- a number that is there twice, or not in the section of its number;
- a page without a section of steps, or that does not end with what was tried against it;
- a page that the book or the table in `SECURITY.md` does not name.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NUMBER = re.compile(r"\*\*(\d+\.\d+)(?: (check|bound))?(?: [^*]*)?\*\*")
HEADING = re.compile(r"^## (?:(\d+) )?(.*)$")
MARKER = re.compile(r"^\s*(///|//|#|)\s*proof: ([a-z0-9-]+) (\d+\.\d+(?:, \d+\.\d+)*)\.?$")
LOOKS_LIKE_ONE = {".rs": re.compile(r"^\s*///?\s*proof: "), ".py": re.compile(r"^\s*#?\s*proof: ")}
TESTS = re.compile(r"/tests/|/(?:\w+_)?(?:tests|cheats)\.rs$")
STEPS, LAST = "Steps", "What was tried against it"


@dataclass
class Page:
    """A proof: its numbers, and for each whether it needs code, and whether it needs a cheater."""

    name: str
    needs_code: dict = field(default_factory=dict)
    needs_test: set = field(default_factory=set)
    faults: list = field(default_factory=list)


def read_page(name, text):
    page, section, title, titles = Page(name), None, "", []
    fenced = False
    for line, said in enumerate(text.splitlines(), 1):
        fenced ^= said.startswith("```")
        if fenced:
            continue
        if heading := HEADING.match(said):
            section, title = heading[1], heading[2]
            titles.append(title)
        for number, kind in NUMBER.findall(said):
            where = f"docs/proofs/{name}.md:{line}: {number}"
            if number in page.needs_code:
                page.faults.append(f"{where} is there twice")
            if number.split(".")[0] != section:
                page.faults.append(f"{where} is not in the section of its number")
            page.needs_code[number] = bool(kind) or title.startswith(STEPS)
            if kind == "check":
                page.needs_test.add(number)
    if not any(title.startswith(STEPS) for title in titles):
        page.faults.append(f"docs/proofs/{name}.md: no section `{STEPS}`")
    if not titles or titles[-1] != LAST:
        page.faults.append(f"docs/proofs/{name}.md: the last section is not `{LAST}`")
    return page


def before_a_test(lines, at):
    """Whether the documentation with line `at` is a test's: attributes follow it, and one of them is `test`."""
    for line in lines[at + 1 :]:
        line = line.strip()
        if line.startswith("#["):
            if re.match(r"#\[(?:\w+::)*test\b", line):
                return True
        elif not line.startswith("///"):
            return False
    return False


def markers(root):
    """(where, whether a test's, page, number, fault) of every marker."""
    files = [*root.glob("crates/*/**/*.rs"), *root.glob("tools/*/**/*.py")]
    for path in sorted(path for path in files if "target" not in path.relative_to(root).parts):
        name = path.relative_to(root).as_posix()
        lines = path.read_text(errors="replace").splitlines()
        for at, line in enumerate(lines):
            if not LOOKS_LIKE_ONE[path.suffix].match(line):
                continue
            where = f"{name}:{at + 1}"
            found = MARKER.match(line)
            if not found:
                yield where, False, None, None, "is no marker: `proof: PAGE N.M, N.M`"
                continue
            tests = path.suffix == ".py" or found[1] == "///"
            fault = None
            if not tests and TESTS.search(name):
                fault = "a source's marker in a file of tests"
            if path.suffix == ".rs" and tests and not before_a_test(lines, at):
                fault = "a test's marker before something else"
            for number in found[3].split(", "):
                yield where, tests, found[2], number, fault


def check(root):
    """(what, whether it holds) of everything that is checked."""
    pages = {path.stem: read_page(path.stem, path.read_text()) for path in sorted(root.glob("docs/proofs/*.md"))}
    coded, tested, checks = set(), set(), []
    for where, is_test, name, number, fault in markers(root):
        if name and name not in pages:
            fault = f"no page docs/proofs/{name}.md"
        elif name and number not in pages[name].needs_code:
            fault = f"docs/proofs/{name}.md has no {number}"
        checks.append((f"{where}: {fault}", fault is None))
        (tested if is_test else coded).add((name, number))
    book, table = (root / "mkdocs.yml").read_text(), (root / "SECURITY.md").read_text()
    for page in pages.values():
        where = f"docs/proofs/{page.name}.md"
        checks += [(fault, False) for fault in page.faults]
        checks.append((f"{where}: not in the book (mkdocs.yml)", f"proofs/{page.name}.md" in book))
        checks.append((f"{where}: not in the table of SECURITY.md", f"({where})" in table))
        for number, needed in page.needs_code.items():
            if needed:
                checks.append((f"{where}: {number} has no code", (page.name, number) in coded))
        for number in sorted(page.needs_test):
            checks.append((f"{where}: the check {number} has no cheater's test", (page.name, number) in tested))
    return checks


def main():
    checks = check(ROOT)
    failed = [what for what, holds in checks if not holds]
    for what in failed:
        print(f"FAILED {what}")
    print(f"{len(checks) - len(failed)} passed, {len(failed)} failed")
    return 0 if checks and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
