#!/usr/bin/env python3
"""Tests of `check_audit.py`: it finds every kind of gap that is planted in a sound tree, and none before.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import sys
import tempfile
import unittest
from pathlib import Path

import check_audit

AUDIT = """# Audit

## How to read the tables

| word | meaning |
| --- | --- |
| review, use | whoever |

## Open

| concern | area | what is known | what would close it |
| --- | --- | --- | --- |
| It drips. | pots | hardly | a lid |

## Closed

### Cups

| concern | found by | evidence | closing test |
| --- | --- | --- | --- |
| It was hot. | review | Repairs 1.1 | Repairs 1.1 |
| It was cold. | use | page | tacit-tea: `cup::tests::is_warm`, `brew::is_strong`; `tools/tea.py`: `test_taste`; `tools/tea.py` |
| It was dear. | use | page | tacit-tea: `pot::cheats::is_full` |
| It was late. | use | page | none: sentences |
"""
REPAIRS = """# Repairs

| point | attack as test | the fault put back | failed with it |
| --- | --- | --- | --- |
| 1.1 | tacit-tea: `cup::tests::is_warm` | none | yes |
| 1.1, words | none | none | no test |
"""
SOUND = {
    "docs/audit.md": AUDIT,
    "docs/notes/repairs.md": REPAIRS,
    "crates/tacit-tea/Cargo.toml": "",
    "crates/tacit-tea/src/cup.rs": "mod tests {\n    /// Warm.\n    #[test]\n    // Why.\n    fn is_warm() {}\n}\n",
    "crates/tacit-tea/src/pot.rs": '#[cfg(test)]\n#[path = "pot_cheats.rs"]\nmod cheats;\n',
    "crates/tacit-tea/src/pot_cheats.rs": "#[test]\n#[should_panic]\nfn is_full() {}\n",
    "crates/tacit-tea/tests/it/brew.rs": "#[test]\nfn is_strong() {}\n",
    "tools/tea.py": "class Tea:\n    def test_taste(self):\n        pass\n",
}
# A file, what is replaced in it and by what, and what the check must say.
GAPS = [
    ("crates/tacit-tea/src/cup.rs", "is_warm", "is_hot", "tacit-tea has no test cup::tests::is_warm"),
    ("crates/tacit-tea/src/cup.rs", "#[test]", "", "tacit-tea has no test cup::tests::is_warm"),
    ("crates/tacit-tea/tests/it/brew.rs", "is_strong", "is_weak", "tacit-tea has no test brew::is_strong"),
    ("crates/tacit-tea/src/pot.rs", "mod cheats", "mod others", "tacit-tea has no test pot::cheats::is_full"),
    ("tools/tea.py", "test_taste", "test_smell", "tools/tea.py has no test test_taste"),
    ("docs/audit.md", "; `tools/tea.py` |", "; `tools/milk.py` |", "there is no file tools/milk.py"),
    ("docs/audit.md", "`brew::is_strong`", "`cup::is_strong`", "tacit-tea has no test cup::is_strong"),
    ("docs/audit.md", "tacit-tea: `pot", "tacit-milk: `pot", "tacit-milk has no test pot::cheats::is_full"),
    ("docs/audit.md", "tacit-tea: `pot::cheats::is_full` |", "somewhere |", "somewhere is no test"),
    ("docs/audit.md", "none: sentences", "none", "none is no test in a form"),
    ("docs/audit.md", "| It drips. | pots |", "| It drips. |", "four cells"),
    ("docs/audit.md", "| a lid |", "|  |", "four cells"),
    ("docs/audit.md", "| review | Rep", "| luck | Rep", "found by luck"),
    ("docs/audit.md", "Repairs 1.1 |\n", "Repairs 1.2 |\n", "there is no point 1.2"),
    ("docs/audit.md", "Repairs 1.1 |\n", "Repairs 1.2 |\n", "point 1.1 of docs/notes/repairs.md has a row"),
    ("docs/notes/repairs.md", "| 1.1, words |", "| 2.1, words |", "point 2.1 of docs/notes/repairs.md has a row"),
    ("docs/notes/repairs.md", "`cup::tests::is_warm`", "`cup::tests::is_cool`", "no test cup::tests::is_cool"),
    ("docs/audit.md", AUDIT[AUDIT.index("## Closed") :], "", "there are closed concerns"),
]


def failures(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [what for what, holds in check_audit.check(Path(folder)) if not holds]


class Audit(unittest.TestCase):
    def test_a_sound_page_passes(self):
        self.assertEqual(failures(SOUND), [])

    def test_every_kind_of_gap_is_found(self):
        for file, old, new, what in GAPS:
            with self.subTest(file=file, old=old, new=new):
                self.assertEqual(SOUND[file].count(old), 1)
                found = failures({**SOUND, file: SOUND[file].replace(old, new)})
                self.assertTrue(any(what in failure for failure in found), found)

    def test_the_page_of_this_tree_is_sound(self):
        self.assertEqual([what for what, holds in check_audit.check(check_audit.ROOT) if not holds], [])


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed or not result.testsRun else 0)
