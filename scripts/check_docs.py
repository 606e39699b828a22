#!/usr/bin/env python3
"""Checks the documents: every dependency has its line, every relative link leads somewhere, to its heading too,
every protocol, key type and kind of result has its row, every option of the command is in its manual, hardly a line of prose is longer than 110 characters, and every name of code in
backticks, in documents and in Rust's comments, is there.

A name is a path (`Type::method`, `Self::method`), a constant in capitals, a word with underscores or inner
capitals, or a file or folder of ours. What the code calls so is enough: a name that nothing in the code bears
is stale. CHANGELOG.md is history and may name what is gone; fenced blocks are examples.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from wrap_docs import WIDTH, long_lines

ROOT = Path(__file__).resolve().parent.parent


def dependencies():
    """The names of every outside crate that a manifest of the workspace asks for."""
    names = set()
    for manifest in [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")]:
        content = tomllib.loads(manifest.read_text())
        tables = [content.get("workspace", {}), content, *content.get("target", {}).values()]
        for table in tables:
            for section in ("dependencies", "dev-dependencies", "build-dependencies"):
                names |= {n for n in table.get(section, {}) if not n.startswith("tacit")}
    # What builds the book.
    asked = (ROOT / "tools/book/requirements.txt").read_text()
    names |= set(re.findall(r"(?m)^([\w-]+)==", asked))
    return sorted(names)


def headings(document):
    """The anchors of a document's headings, as a page shows them."""
    text = re.sub(r"(?ms)^```.*?^```$", "", document.read_text())
    titles = re.findall(r"(?m)^#+ +(.*)$", text)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def markdown():
    """Every document of the repository."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return sorted(found)


CODE_ENDINGS = {".rs", ".py", ".sh", ".toml", ".html", ".js", ".s"}
CODE_NAMES = {"Makefile", "run", "Cargo.lock"}
# Folders that begin a path of ours.
FOLDERS = r"(?:\.ci|benches|crates|docs|examples|scripts|src|tests|tools|tacit(?:-[a-z0-9]+)?)"
FILE_ENDINGS = r"(?:rs|py|sh|md|toml|digests)"

CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]{6,}")
PATH = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+")
SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
CAMEL = re.compile(r"(?:[A-Z][a-z0-9]+){2,}")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*\." + FILE_ENDINGS)
FOLDER = re.compile(FOLDERS + r"/[\w./-]*")
WORD = re.compile(r"[A-Za-z_]\w*")
DEFINED = re.compile(r"\b(?:struct|enum|trait|type|union|mod)\s+(\w+)|\bimpl\b([^{;]*)")
# Where a path begins that says nothing of a home.
OUTSIDE = re.compile(r"crate|super|std|core|alloc|tacit(?:_\w+)?")


def tracked(root):
    """The files of the tree, relative to `root`; those of git where it can be asked."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True,
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listed = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    skipped = (".git/", "target/", ".venv/", ".venv-docs/")
    return sorted(name for name in listed if not name.startswith(skipped) and (root / name).is_file())


def without_comments(name, text):
    """The code of a file; its words in strings count, as what the command says is named in the documents."""
    if name.endswith(".rs"):
        return re.sub(r"(?m)(^|\s)//.*$", "", text)
    if name.endswith((".py", ".sh", ".toml")) or "." not in Path(name).name:
        return re.sub(r"(?m)(^|\s)#.*$", "", text)
    return text


def is_code(name):
    # This check's own test invents names.
    own = name.endswith("test_check_docs.py")
    return not own and (Path(name).suffix in CODE_ENDINGS or Path(name).name in CODE_NAMES)


class Tree:
    """What names there are in a tree."""

    def __init__(self, root):
        self.root = root
        self.files = tracked(root)
        self.folders = {str(parent) for name in self.files for parent in Path(name).parents}
        self.words = set()
        self.words_of = {}
        self.defined = {}
        for name in filter(is_code, self.files):
            code = without_comments(name, (root / name).read_text(errors="replace"))
            words = set(WORD.findall(code))
            self.words |= words
            if not name.endswith(".rs"):
                continue
            self.words_of[name] = words
            module = Path(name).parent.name if Path(name).stem in ("mod", "lib", "main") else Path(name).stem
            headers = " ".join(" ".join(pair) for pair in DEFINED.findall(code))
            for home in {module, *WORD.findall(headers)}:
                self.defined.setdefault(home, set()).add(name)

    def has_file(self, path, near):
        """A path from the root, from the folder that names it, or the end of some file's or folder's path."""
        path = path.rstrip("/")
        known = set(self.files) | self.folders
        for base in (self.root, near):
            try:
                if str((base / path).resolve().relative_to(self.root.resolve())) in known:
                    return True
            except ValueError:
                pass
        return any(entry == path or entry.endswith("/" + path) for entry in known)

    def has_path(self, path, within):
        """Whether the last name stands where the one before it is defined; of outside types the word counts."""
        *_, owner, name = path.split("::")
        if owner == "Self":
            if not within.endswith(".rs"):
                return False
            text = without_comments(within, (self.root / within).read_text())
            found = rf"\b(?:fn|const|type)\s+{name}\b|^\s+(?:pub\s+)?{name}\s*(?:[,({{=:]|$)"
            return re.search(found, text, re.MULTILINE) is not None
        if OUTSIDE.fullmatch(owner) or owner not in self.defined:
            return name in self.words or name in self.defined
        homes = self.defined[owner]
        # A module's folder belongs to it, and the crate that the library gives that name.
        inner = [f for f in self.words_of if f"/{owner}/" in f or f.startswith(f"crates/tacit-{owner}/")]
        return any(name in self.words_of[f] for f in [*homes, *inner])

    def has(self, name, within):
        """Whether the name in backticks is there; None for what is no name of code."""
        name = name.removesuffix("()")
        start = re.fullmatch(r"([a-z][a-z0-9]*(?:_[a-z0-9]+)+)_?[*…]", name)
        if start:
            return any(word.startswith(start[1]) for word in self.words)
        if PATH.fullmatch(name):
            return self.has_path(name, within)
        if CONSTANT.fullmatch(name) or SNAKE.fullmatch(name) or CAMEL.fullmatch(name):
            return name in self.words
        if FILE.fullmatch(name) or FOLDER.fullmatch(name):
            # A part in capitals stands for a name.
            blanks = [part for part in name.split("/") if re.fullmatch(r"[A-Z]{2,}(?:\.\w+)?", part)]
            if any(part not in self.special() for part in blanks):
                return None
            return self.has_file(name, (self.root / within).parent)
        return None

    def special(self):
        """Names of files that are in capitals themselves."""
        return {Path(name).name for name in self.files if Path(name).name.isupper() or name.endswith(".md")}


def spans(name, text):
    """(line, name) of what stands in backticks in a document or a Rust file's comments, but for fenced blocks."""
    found, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if name.endswith(".rs"):
            comment = re.search(r"(?:^|\s)//[/!]?(.*)$", line)
            if not comment:
                fenced = False
                continue
            line = comment[1]
        if line.strip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            found += [(number, span) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", line)]
            if name.endswith(".rs"):
                # What a link of the documentation leads to; rustdoc does not look at private items.
                found += [(number, span) for span in re.findall(r"\]\((\w+(?:::\w+)+)\)", line)]
    return found


def stale_names(root):
    """(where, name, whether it is there) of every name of code in backticks."""
    tree = Tree(root)
    result = []
    for name in tree.files:
        document = name.endswith(".md") and name != "CHANGELOG.md" and not name.startswith("benches/record/")
        if not document and not name.endswith(".rs"):
            continue
        for line, span in spans(name, (root / name).read_text(errors="replace")):
            there = tree.has(span, name)
            if there is not None:
                result.append((f"{name}:{line}", span, there))
    return result


# Where the protocols that the command offers are declared.
CATALOGUES = ("crates/tacit-bench/src/base", "crates/tacit/src/catalogue")


def catalogued(root):
    """The names of all protocols: of every entry, and of every constant that an entry is named by."""
    names = set()
    for file in (file for folder in CATALOGUES for file in (root / folder).glob("*.rs")):
        code = without_comments(file.name, file.read_text()).split("#[cfg(test)]")[0]
        for path in re.findall(r"\bname: (?:(\w+)::)?NAME\b", code):
            owner = path or re.search(r"use ([\w:]+)::(?:\{[^}]*\b)?NAME\b", code)[1]
            names |= constants(root, owner.split("::")[-1])
        names |= set(re.findall(r'pub static \w+: Entry =\s*Entry \{\s*name: "([a-z0-9-]+)"', code))
    return sorted(names)


def constants(root, module):
    """The value of the constant `NAME` of a module of that name."""
    files = [*root.glob(f"crates/*/src/**/{module}.rs"), *root.glob(f"crates/*/src/**/{module}/mod.rs")]
    found = (re.search(r'const NAME: &str = "([a-z0-9-]+)"', file.read_text()) for file in files)
    return {match[1] for match in found if match}


def rows(text):
    """The protocols that have a row in a table: what stands in backticks at a row's beginning."""
    return set(re.findall(r"(?m)^\| `([a-z0-9-]+)`", text))


KEY_TYPES = "crates/tacit-data/src/keys/mod.rs"
KINDS = "crates/tacit/src/job/psi/reveal.rs"
HELP = "crates/tacit-cli/tests/snapshots/help.txt"


def key_types(code):
    """The key types that a user can name, what follows a colon aside."""
    body = re.search(r"fn named\(name: &str\) -> Option<Self> \{\s*Some\(match .*?\n    \}\n", code, re.DOTALL)[0]
    return sorted({name.split(":")[0] for name in re.findall(r'"([a-z0-9:-]+)"(?:, \w+\)[^=]*)? => Kind::', body)})


def kinds(code):
    """The kinds of `--reveal` that have a name of their own."""
    return re.findall(r'"([a-z]+)"', re.search(r"pub const NAMES: [^=]*= \[([^\]]*)\]", code)[1])


def options(text):
    """The options in the help of every command but `tacit bench`, whose manual is its own help."""
    parts = re.split(r"(?m)^\$ tacit ", text)[1:]
    helped = "".join(part for part in parts if not part.startswith("bench"))
    return sorted(set(re.findall(r"(?m)^\s+(?:-\w, )?(--[a-z][a-z0-9-]+)", helped)) - {"--version"})


def in_first_cell(text, name):
    """Whether some row of a table is of that name, whatever follows it behind a colon."""
    return re.search(rf"(?m)^\| [^|]*`{name}(?:[:`])", text) is not None


def told(root):
    """(what, whether it holds) of lists that the code has and the documents tell one by one."""
    text = {name: (root / name).read_text() for name in (KEY_TYPES, KINDS, HELP, "docs/keys.md", "docs/cli.md")}
    shown = (root / "crates/tacit-cli/src/cli/keys.rs").read_text().split('"\\')[1].split('";')[0]
    listed = re.search(r'pub const NAMES: &str = "(.*?)";', text[KEY_TYPES], re.DOTALL)[1]
    for name in key_types(text[KEY_TYPES]):
        yield f"docs/keys.md has a row for the key type {name}", in_first_cell(text["docs/keys.md"], name)
        yield f"the help of keys has the type {name}", re.search(rf"\b{name}\b", shown) is not None
        yield f"KeyType::NAMES has {name}", re.search(rf"\b{name}\b", listed) is not None
    for kind in kinds(text[KINDS]):
        for page in ("docs/use/intersect.md", "docs/data-protection.md"):
            yield f"{page} has a row for --reveal {kind}", in_first_cell((root / page).read_text(), kind)
        usage = re.search(r"--reveal [^\s\]]*\|[^\n]*", text["docs/cli.md"])[0]
        yield f"docs/cli.md lists --reveal {kind}", re.search(rf"\b{kind}\b", usage) is not None
    for option in options(text[HELP]):
        yield f"docs/cli.md has {option}", re.search(rf"{option}(?![\w-])", text["docs/cli.md"]) is not None


def main():
    checks = []
    listed = (ROOT / "docs" / "dependencies.md").read_text()
    for name in dependencies():
        checks.append((f"docs/dependencies.md names {name}", f"`{name}`" in listed))
    lines, long = 0, []
    for document in markdown():
        text, name = document.read_text(), document.relative_to(ROOT)
        for link, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)]*)?\)", text):
            if "://" not in link and not link.startswith("mailto:"):
                target = document.parent / link if link else document
                # The reference of the Python package is made when the book is built.
                there = target.exists() or link == "python-reference.md"
                if there and anchor and target.suffix == ".md":
                    there = anchor[1:] in headings(target)
                checks.append((f"{name}: link to {link}{anchor}", there))
        lines += text.count("\n")
        long += [f"{name}:{number}" for number in long_lines(text)]
    # Two in a thousand may be longer, so that nobody's paragraph waits for another's.
    what = f"at most 2 lines of prose in 1000 exceed {WIDTH} characters (scripts/wrap_docs.py wraps): {', '.join(long)}"
    checks.append((what, 1000 * len(long) <= 2 * lines))
    for where, name, there in stale_names(ROOT):
        checks.append((f"{where}: `{name}`, which nothing in the code is called", there))
    listed = rows((ROOT / "docs" / "protocols.md").read_text())
    for name in catalogued(ROOT):
        checks.append((f"docs/protocols.md has a row for {name}", name in listed))
    checks += told(ROOT)
    passed = sum(ok for _, ok in checks)
    for what, ok in checks:
        if not ok:
            print(f"FAILED {what}")
    print(f"{passed} passed, {len(checks) - passed} failed")
    return 0 if passed and passed == len(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
