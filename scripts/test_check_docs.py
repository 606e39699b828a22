#!/usr/bin/env python3
"""Tests of `check_docs.py`: it finds every kind of stale name in a made-up tree, and none in this one.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import check_docs
import wrap_docs

CODE = '''//! Reads [`Kettle::pour`], and see `crate::tea`.
pub const MOST_CUPS: usize = 3;
pub mod tea;
/// Fills `lid`, as [`pour`](Self::pour) does.
pub struct Kettle { pub lid: bool }
impl Kettle {
    pub fn pour(&self) -> usize { MOST_CUPS } // as `MOST_CUPS` says
    // `Self::pour` is all.
}
/// ```
/// // `GONE_EXAMPLE` in a fenced block
/// ```
fn own() { println!("brewed_well"); }
'''

# What is there, and is said in many ways.
TRUE = """`Kettle::pour`, `kettle::Kettle`, `Kettle::pour()`, `MOST_CUPS`, `brewed_well`,
`crates/kettle/src/kettle.rs`, `kettle.rs`, `crates/kettle/`, `src/kettle.rs`, `docs/tea.md`, `tea.md`,
`brewed_we*`, plain words, `alice.key`, `100/40`, `--peer`, `u64`, `NAME.key`, `crates/NAME/src/main.rs`.
```
MOST_SAUCERS and `MOST_SAUCERS`
```
"""

# Each is gone, or never was.
STALE = [
    "Kettle::boil",
    "Kettle::boil()",
    "kettle::Saucer",
    "MOST_SAUCERS",
    "SAUCERS",
    "brewed_badly",
    "brewed_badly()",
    "brewed_badly_*",
    "brewed_badly…",
    "SilverSpoon",
    "spoon.rs",
    "crates/spoon/",
    "crates/kettle/src/spoon.rs",
    "docs/spoon.md",
    "scripts/stir.py",
]


def tree(folder, document, code=CODE):
    root = Path(folder)
    for name, text in {
        "crates/kettle/src/kettle.rs": code,
        "crates/kettle/src/tea.rs": "",
        "docs/tea.md": document,
        "CHANGELOG.md": "`MOST_SAUCERS` went.",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


class Names(unittest.TestCase):
    def stale(self, document, code=CODE):
        with tempfile.TemporaryDirectory() as folder:
            names = check_docs.stale_names(tree(folder, document, code))
            return [(where, name) for where, name, there in names if not there]

    def test_what_is_there_is_found(self):
        self.assertEqual(self.stale(TRUE), [])

    def test_every_kind_of_invented_name_is_found_stale_in_a_document(self):
        for name in STALE:
            with self.subTest(name=name):
                self.assertEqual(self.stale(f"One\n\nsee `{name}` there"), [("docs/tea.md:3", name)])

    def test_and_in_a_comment(self):
        for name in [*STALE, "Self::boil"]:
            for comment in ("/// ", "//! ", "    // "):
                with self.subTest(name=name, comment=comment):
                    line = CODE.count("\n") + 1
                    found = self.stale(TRUE, f"{CODE}{comment}see `{name}`\n")
                    self.assertEqual(found, [(f"crates/kettle/src/kettle.rs:{line}", name)])

    def test_a_link_to_a_method_that_is_gone(self):
        found = self.stale("", CODE + "/// ends at [`pour`](Self::boil)\n")
        self.assertEqual([name for _, name in found], ["Self::boil"])

    def test_a_name_in_a_comment_alone_is_none(self):
        found = self.stale("`brew_slowly`", CODE + "// brew_slowly\n")
        self.assertEqual([name for _, name in found], ["brew_slowly"])


class Protocols(unittest.TestCase):
    def test_rows_and_catalogue(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in check_docs.CATALOGUES:
                (root / name).mkdir(parents=True, exist_ok=True)
                (root / name / "mod.rs").write_text('#[cfg(test)]\npub static T: Entry = Entry { name: "test" }')
            entry = "pub static ONE: Entry =\n    Entry { name: "
            first = root / check_docs.CATALOGUES[0] / "first.rs"
            first.write_text(f"{entry}co15::NAME }};\nuse kos::{{N, NAME, O}};\n{entry}NAME }};\n// name: NAME\n")
            second = root / check_docs.CATALOGUES[1] / "second.rs"
            second.write_text(f'{entry}"yao" }};\nconst READY: Entry = Entry {{ name: "pool" }};\n')
            (root / "crates/tacit-ot/src/base").mkdir(parents=True)
            for name in ("co15", "kos"):
                file = root / f"crates/tacit-ot/src/base/{name}.rs"
                file.write_text(f'pub const NAME: &str = "{name}";\n')
            self.assertEqual(check_docs.catalogued(root), ["co15", "kos", "yao"])
        table = "| `kos` (default) | a |\n| `yao` | `co15` |\n`co15`\n"
        self.assertEqual(check_docs.rows(table), {"kos", "yao"})

    def test_the_catalogue_of_this_tree_is_read(self):
        found = set(check_docs.catalogued(check_docs.ROOT))
        known = {"mrr21", "roted", "bdgm19", "kos", "ferret-uni", "silent", "paxos", "yao", "wmk17"}
        self.assertLessEqual(known, found)


# A tree in which all that the code lists is in the documents.
LISTS = {
    check_docs.KEY_TYPES: """pub const NAMES: &str = "text, email[:x], \\
        postcode[:COUNTRY]";
    fn named(name: &str) -> Option<Self> {
        Some(match name.split_once(':').unwrap_or((name, "")) {
            ("postcode", country) if !country.is_empty() => Kind::Postcode(Some(country)),
            _ => match name {
                "text" => Kind::Text,
                "email:gmail" => Kind::Gmail,
                _ => return None,
            },
        })
    }
""",
    check_docs.KINDS: """pub const NAMES: [&'static str; 2] = ["rows", "sum"];\n""",
    check_docs.HELP: "$ tacit ot -h\n  -c, --count <N>  how many\n      --out <F>\n$ tacit bench ot -h\n      --lanes <N>\n",
    "docs/keys.md": "| `text`, `email` | as written |\n| `postcode:COUNTRY` | a postcode |\n",
    "docs/cli.md": "tacit psi [--reveal rows|sum:COL]\ntacit ot --count N --out F\n",
    "docs/use/intersect.md": "| `rows` | rows |\n| `sum:COL` | the sum |\n",
    "docs/data-protection.md": "| `rows` | rows |\n| `sum:COL` | the sum |\n",
    "crates/tacit-cli/src/cli/keys.rs": 'const TYPES: &str = "\\\n  text, email, postcode";\n',
}
# A file, what is replaced in it and by what, and what the check must say.
LEFT_OUT = [
    ("docs/keys.md", "`postcode:", "`zip:", "docs/keys.md has a row for the key type postcode"),
    ("crates/tacit-cli/src/cli/keys.rs", "email", "mail", "the help of keys has the type email"),
    (check_docs.KEY_TYPES, "text, email[:x]", "email[:x]", "KeyType::NAMES has text"),
    ("docs/use/intersect.md", "`sum:", "`total:", "docs/use/intersect.md has a row for --reveal sum"),
    ("docs/data-protection.md", "`rows`", "`lines`", "docs/data-protection.md has a row for --reveal rows"),
    ("docs/cli.md", "rows|sum", "rows|total", "docs/cli.md lists --reveal sum"),
    ("docs/cli.md", "--out F", "--output F", "docs/cli.md has --out"),
]


class Lists(unittest.TestCase):
    def left_out(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [what for what, holds in check_docs.told(Path(folder)) if not holds]

    def test_what_the_documents_tell_is_found(self):
        self.assertEqual(self.left_out(LISTS), [])
        self.assertEqual(check_docs.key_types(LISTS[check_docs.KEY_TYPES]), ["email", "postcode", "text"])
        self.assertEqual(check_docs.options(LISTS[check_docs.HELP]), ["--count", "--out"])

    def test_what_they_leave_out_is_said(self):
        for file, old, new, what in LEFT_OUT:
            with self.subTest(what=what):
                self.assertIn(old, LISTS[file])
                self.assertEqual(self.left_out({**LISTS, file: LISTS[file].replace(old, new)}), [what])

    def test_the_lists_of_this_tree_are_read(self):
        read = lambda name: (check_docs.ROOT / name).read_text()
        self.assertTrue({"postcode", "uuid"} <= set(check_docs.key_types(read(check_docs.KEY_TYPES))))
        self.assertTrue({"mean", "over"} <= set(check_docs.kinds(read(check_docs.KINDS))))
        self.assertTrue({"--max-message", "--key"} <= set(check_docs.options(read(check_docs.HELP))))


class Links(unittest.TestCase):
    def test_headings_are_anchors(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text("# One: two\n```\n# none\n```\n## The Δ of its `trees`\n")
            self.assertEqual(check_docs.headings(page), {"one-two", "the-δ-of-its-trees"})


class Wrapping(unittest.TestCase):
    WORDS = "word " * 40

    def test_long_prose_is_found_and_wrapped(self):
        for begin in ("", "- ", "1. ", "> ", "  - "):
            with self.subTest(begin=begin):
                text = f"# Head\n\n{begin}{self.WORDS.strip()}\n\nshort\n"
                self.assertEqual(wrap_docs.long_lines(text), [3])
                wrapped = wrap_docs.wrap(text)
                self.assertEqual(wrap_docs.long_lines(wrapped), [])
                self.assertEqual(wrap_docs.wrap(wrapped), wrapped)
                self.assertEqual(wrapped.count("word"), 40)

    def test_a_mark_that_does_not_show_takes_no_room_and_is_not_parted(self):
        text = "word " * 20 + "2^-40<!-- bound: a bound of some name -->" + " word" * 20
        lines = wrap_docs.wrap(text).split("\n")
        self.assertEqual([line.count("word") for line in lines], [21, 19])
        self.assertIn("2^-40<!-- bound: a bound of some name -->", lines[0])
        self.assertEqual(wrap_docs.long_lines("\n".join(lines)), [])

    def test_what_is_no_prose_stays(self):
        for text in (f"| {self.WORDS}|", f"```\n{self.WORDS}\n```", f"## {self.WORDS}", "a" * 200, f"<p>{self.WORDS}"):
            self.assertEqual(wrap_docs.long_lines(text), [], text)
            self.assertEqual(wrap_docs.wrap(text), text)

    def test_code_and_links_are_not_parted_and_nothing_begins_by_chance(self):
        text = "word " * 20 + "`a b c d` word [two words](a/path.md#anchor) - word 1. # one"
        lines = wrap_docs.wrap(text).split("\n")
        self.assertGreater(len(lines), 1)
        self.assertEqual(" ".join(lines), text)
        for line in lines:
            self.assertEqual(line.count("`") % 2, 0, line)
            self.assertNotRegex(line, r"^(?:- |\d+\. |# )")


class ThisTree(unittest.TestCase):
    def test_nothing_is_stale(self):
        script = Path(__file__).with_name("check_docs.py")
        run = subprocess.run([sys.executable, script], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        # A check that looks at nothing finds nothing.
        self.assertGreater(int(run.stdout.split(" passed")[0].split()[-1]), 400, run.stdout)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
