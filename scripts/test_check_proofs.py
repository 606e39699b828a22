#!/usr/bin/env python3
"""Tests of `check_proofs.py`: it finds every kind of gap that is planted in a sound tree, and none before.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import sys
import tempfile
import unittest
from pathlib import Path

import check_proofs

PAGE = """# Proof: tea

## 1 What is realised

**1.1** A cup. **1.2 A pot.** Two cups.

```text
**9.9** is an example
```

## 2 Steps, in the order of messages

- **2.1** A boils water.
- **2.2 check** B stops unless it is hot.

## 3 As shipped

**3.1 bound** Three minutes.

## What was tried against it

Cold water.
"""
SOUND = {
    "docs/proofs/tea.md": PAGE,
    "mkdocs.yml": "nav:\n  - proofs/tea.md\n",
    "SECURITY.md": "| tea | [page](docs/proofs/tea.md) |\n",
    "crates/kettle/src/lib.rs": "// proof: tea 2.1, 3.1\nstruct Sip {\n    proof: [u8; 16],\n}\n    // proof: tea 2.2\n",
    "crates/kettle/src/lid_tests.rs": "/// Cold water is found.\n///\n/// proof: tea 2.2\n#[test]\nfn cold() {}\n",
    "tools/models/tea.py": '"""The game of a cup.\n\nproof: tea 1.1\n"""\n',
    "target/crates/kettle/src/lib.rs": "// proof: coffee 1.1\n",
}
# A file, what is replaced in it and by what, and what the check must say.
GAPS = [
    ("docs/proofs/tea.md", "- **2.2", "- **2.3** C pours.\n- **2.2", "tea.md: 2.3 has no code"),
    ("docs/proofs/tea.md", "**1.1**", "**1.1 check**", "tea.md: 1.1 has no code"),
    ("docs/proofs/tea.md", "**1.1**", "**1.1 bound A cup.**", "tea.md: 1.1 has no code"),
    ("crates/kettle/src/lib.rs", ", 3.1", "", "tea.md: 3.1 has no code"),
    ("docs/proofs/tea.md", "**2.1**", "**2.1 check**", "the check 2.1 has no cheater's test"),
    ("crates/kettle/src/lid_tests.rs", "/// proof: tea 2.2\n", "", "the check 2.2 has no cheater's test"),
    ("crates/kettle/src/lib.rs", "2.1, ", "2.1, 2.4, ", "lib.rs:1: docs/proofs/tea.md has no 2.4"),
    ("tools/models/tea.py", "1.1", "9.9", "tea.py:3: docs/proofs/tea.md has no 9.9"),
    ("tools/models/tea.py", "tea 1.1", "coffee 1.1", "no page docs/proofs/coffee.md"),
    ("crates/kettle/src/lib.rs", "2.1, 3.1", "2.1 and 3.1", "lib.rs:1: is no marker"),
    ("crates/kettle/src/lid_tests.rs", "/// proof", "// proof", "a source's marker in a file of tests"),
    ("crates/kettle/src/lid_tests.rs", "#[test]", "#[inline]", "a test's marker before something else"),
    ("crates/kettle/src/lid_tests.rs", "#[test]\n", "", "a test's marker before something else"),
    ("docs/proofs/tea.md", "**1.2 A pot.**", "**1.1**", "tea.md:5: 1.1 is there twice"),
    ("docs/proofs/tea.md", "**1.2 A pot.**", "**2.7 A pot.**", "tea.md:5: 2.7 is not in the section"),
    ("docs/proofs/tea.md", "## 2 Steps, in", "## 2 In", "no section `Steps`"),
    ("docs/proofs/tea.md", "## What was tried against it", "## 4 Praise", "the last section is not"),
    ("mkdocs.yml", "proofs/tea.md", "", "not in the book"),
    ("SECURITY.md", "docs/proofs/tea.md", "", "not in the table"),
]


class Gaps(unittest.TestCase):
    def failed(self, change=None):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, content in SOUND.items():
                if change and change[0] == name:
                    self.assertIn(change[1], content)
                    content = content.replace(change[1], change[2], 1)
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            return [what for what, holds in check_proofs.check(root) if not holds]

    def test_a_sound_tree_passes(self):
        self.assertEqual([], self.failed())

    def test_every_kind_of_gap_is_found(self):
        for file, old, new, said in GAPS:
            with self.subTest(said=said, new=new):
                found = self.failed((file, old, new))
                self.assertTrue(any(said in what for what in found), f"{said}: {found}")


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
