#!/usr/bin/env python3
"""Compares what the libraries offer to their users with files in the tree, so that a change of it is seen.

    scripts/public_surface.py [--update] [--doc FOLDER]

For Rust it reads the documentation as `make docs` builds it (`target/doc`, or FOLDER), from the first page of the crate
`tacit` on, and compares it with `crates/tacit/api.txt`: one line for each item, field, variant, method and trait,
sorted. Left out are what a compiler adds (auto traits, blanket implementations) and methods of traits. The words of a
declaration are rustdoc's: where another release of it built the pages than the file names, differences are printed and
fail nothing. For Python it reads the sources, and compares them with `python/api.txt` (`python_surface.py`).

--update writes both. Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import argparse
import difflib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import python_surface

ROOT = Path(__file__).resolve().parent.parent
# The crate that users depend on; it names what they need of the others, and its pages hold that.
CRATE = "tacit"
SNAPSHOT = ROOT / "crates" / "tacit" / "api.txt"
PYTHON = ROOT / "python" / "api.txt"

# What a browser shows and is no part of a declaration.
SKIPPED = {"anchor", "src", "rightside", "tooltip", "hideme", "notable-traits"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# Traits that say nothing to a user.
NO_TRAIT = {"StructuralPartialEq"}
# Kinds of items whose declaration has a body of fields, variants or required names.
BODIES = ("struct ", "enum ", "union ", "trait ")


class Page(HTMLParser):
    """What a page of rustdoc declares: the item, its methods, the traits it has, and the items of a module."""

    def __init__(self, text):
        super().__init__()
        self.declaration, self.methods, self.traits, self.links, self.reexports = "", [], [], [], []
        self.version = ""
        # The open elements, the part of the page that they are in, and the text that is being collected.
        self.open, self.part, self.text, self.into, self.depth = [], None, [], None, 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        classes = set((named.get("class") or "").split())
        self.version = named.get("data-rustdoc-version") or self.version
        if tag in VOID:
            return
        if (named.get("id") or "").endswith("implementations-list"):
            self.part = named["id"]
        elif tag == "h2":
            self.part = None
        elif tag == "dl" and "item-table" in classes:
            self.part = "items"
        self.open.append((tag, bool(classes & SKIPPED)))
        if self.into is None:
            inherent = self.part == "implementations-list" and tag == "h4"
            implemented = self.part == "trait-implementations-list" and tag == "h3"
            if tag == "pre" and "item-decl" in classes:
                self.collect("declaration")
            elif "code-header" in classes and (inherent or implemented):
                self.collect("method" if inherent else "trait")
            elif self.part == "items" and tag == "dt":
                self.collect("entry")
        if self.into == "entry" and tag == "a" and named.get("href"):
            self.links.append(named["href"])
        elif self.into and classes & {"code-attribute", "where"}:
            # They are lines of their own, by style alone.
            self.text.append("\n")

    def collect(self, into):
        self.into, self.depth, self.text = into, len(self.open), []

    def handle_data(self, data):
        if self.into and not any(skipped for _, skipped in self.open):
            self.text.append(data)

    def handle_endtag(self, tag):
        if tag in VOID or not any(name == tag for name, _ in self.open):
            return
        while self.open.pop()[0] != tag:
            pass
        if self.into == "declaration" and tag == "div":
            self.text.append("\n")
        if self.into and len(self.open) < self.depth:
            text, into, self.into = "".join(self.text), self.into, None
            if into == "declaration":
                # Behind a type's own declaration an alias shows that of what it names.
                self.declaration = self.declaration or text
            elif into == "method":
                self.methods.append(one_line(text))
            elif into == "trait":
                self.traits.append(one_line(text))
            elif text.strip().startswith("pub use"):
                # A name that leads to another page, which is read where it stands.
                self.links = [link for link in self.links if not link.startswith(("#", "../"))]
                self.reexports.append(one_line(text))


def one_line(text):
    # Behind a constant's value rustdoc writes it out once more.
    line = re.sub(r"; // \S+$", "", " ".join(text.split())).rstrip(",; ")
    for wide, narrow in (("( ", "("), (", )", ")"), (" )", ")"), (",)", ")"), ("< ", "<"), (", >", ">")):
        line = line.replace(wide, narrow)
    return line


def parts(declaration):
    """The head of a declaration in one line, and each field, variant or name of its body in one."""
    lines = [line for line in declaration.splitlines() if not line.strip().startswith("//")]
    text = "\n".join(lines)
    opening = re.search(r"\{\s*$", text, re.MULTILINE)
    if not opening or not text.rstrip().endswith("}") or not re.search(rf"\b(?:{'|'.join(BODIES)})", text):
        return one_line(text), []
    head, body = text[: opening.start()], text[opening.end() : text.rstrip().rindex("}")]
    found, begun, depth = [], [], 0
    for line in body.splitlines():
        begun.append(line)
        depth += sum(line.count(c) for c in "({[") - sum(line.count(c) for c in ")}]")
        # `where` of a method in a trait goes on until its end.
        if depth == 0 and line.rstrip().endswith((",", ";", "}", "*/")) and not awaits_more(begun):
            found.append(one_line(" ".join(begun)))
            begun = []
    if rest := one_line(" ".join(begun)):
        found.append(rest)
    return one_line(head), [part for part in found if part]


def awaits_more(lines):
    """Whether the lines are a function's with bounds behind `where`, which commas part."""
    text = "\n".join(lines)
    return re.search(r"\bwhere\b", text) is not None and not text.rstrip().endswith((";", "}"))


def name_of(part):
    """The name that a method, field or variant bears."""
    part = re.sub(r"#\[[^\]]*\] ?", "", part)
    found = re.search(r"\bfn (\w+)", part) or re.match(r"(?:pub )?(?:const |type )?(\w+)", part)
    return found[1] if found else ""


def lines_of(path, page):
    """The lines of an item's page."""
    head, body = parts(page.declaration)
    lines = [f"{path}: {head}"]
    lines += [f"{path}::{name_of(part)}: {part}" for part in body if not part.startswith("/*")]
    lines += [f"{path}: {part}" for part in body if part.startswith("/*")]
    lines += [f"{path}::{name_of(method)}: {method}" for method in page.methods]
    plain, others = set(), []
    for trait in page.traits:
        # `impl Debug for X` says no more than the trait's name.
        if simple := re.fullmatch(r"impl(?:<'[\w', ]+>)? (\w+) for \w+(?:<'[\w', ]+>)?", trait):
            plain.add(simple[1])
        else:
            others.append(f"{path}: {trait}")
    if plain := sorted(plain - NO_TRAIT):
        lines.append(f"{path}: implements {', '.join(plain)}")
    return lines + [line for line in others if not any(f"impl {trait} " in line for trait in NO_TRAIT)]


def surface(folder, crate=CRATE):
    """(rustdoc's version, the sorted lines) of a crate's pages."""
    lines, version, seen = set(), "", set()
    waiting = [(folder / crate / "index.html", crate)]
    while waiting:
        file, path = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        page = Page(file.read_text())
        version = page.version or version
        if file.name != "index.html":
            lines.update(lines_of(path, page))
            continue
        lines.add(f"{path}: mod")
        lines.update(f"{path}: {reexport}" for reexport in page.reexports)
        for link in page.links:
            target = (file.parent / link.split("#")[0]).resolve()
            # What a page links to elsewhere is no item of this module.
            if file.parent.resolve() not in target.parents:
                continue
            name = target.parent.name if target.name == "index.html" else target.stem.split(".", 1)[1]
            waiting.append((target, f"{path}::{name}"))
    return version, sorted(lines)


def text_of(version, lines):
    """The content of the snapshot of Rust: its first line names the release of rustdoc."""
    head = f"# What the crate {CRATE} offers, by rustdoc {version.split()[0]}; scripts/public_surface.py --update writes it."
    return "\n".join([head, *lines]) + "\n"


def text_of_python(lines):
    head = "# What the Python package offers; scripts/public_surface.py --update writes it."
    return "\n".join([head, *lines]) + "\n"


def compare(kept, built):
    """What to print of a snapshot and of what was built, and whether that is sound."""
    old, new = kept.splitlines(), built.splitlines()
    if old[1:] == new[1:]:
        return [], True
    said = list(difflib.unified_diff(old[1:], new[1:], "as kept", "as built", lineterm="", n=0))
    if old and old[0] != new[0]:
        return [*said, "another release of rustdoc made the file: differences fail nothing"], True
    return [*said, "FAILED: if the change is meant, run scripts/public_surface.py --update"], False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--doc", type=Path, default=ROOT / "target" / "doc")
    options = parser.parse_args()
    version, lines = surface(options.doc)
    if not lines:
        print(f"error: no pages of {CRATE} in {options.doc}; run `make docs`", file=sys.stderr)
        print("0 passed, 1 failed")
        return 1
    python = python_surface.surface(ROOT / "python" / "tacit")
    failed = 0
    for file, built in ((SNAPSHOT, text_of(version, lines)), (PYTHON, text_of_python(python))):
        if options.update:
            file.write_text(built)
        said, sound = compare(file.read_text() if file.is_file() else "", built)
        failed += not sound
        for line in [str(file.relative_to(ROOT)), *said] if said else []:
            print(line)
    print(f"{2 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
