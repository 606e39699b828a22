#!/usr/bin/env python3
"""Tests of `check_structure.py`: it finds every kind of fault in a made-up house, and none where there is none.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import sys
import tempfile
import unittest
from pathlib import Path

import check_structure

FLOORS = [["cellar"], ["attic-room"]]
# A sound house: text and tests may say anything, parents re-export, children use their parents.
SOUND = {
    "cellar/Cargo.toml": '[package]\nname = "cellar"\n',
    "cellar/src/lib.rs": """//! See `attic_room::Roof`.
        mod barrel;\npub mod shelf;\npub mod kernels;\nmod base;
        pub use barrel::Barrel;\npub use base::Block;
        pub fn empty() -> &'static str { "crate::attic_room::Roof" }
        """,
    "cellar/src/base.rs": "pub struct Block;\n",
    "cellar/src/barrel.rs": """use crate::{base::Block, empty};
        pub struct Barrel(Block);\nconst DEPTH: usize = 3;
        impl Barrel { const WEIGHT: usize = 4; fn lift<const HEIGHT: usize>() -> char { '"' } }
        #[cfg(test)] mod tests { use crate::shelf::Shelf; const DEPTH: usize = 4; }
        """,
    "cellar/src/shelf.rs": """use crate::Barrel;\npub struct Shelf(Barrel);
        impl Shelf { const WEIGHT: usize = 5; fn all(&self) -> impl Iterator<Item = u8> + use<'_> { [].into_iter() } }
        const DEPTH: usize = crate::barrel::DEPTH;
        """,
    "cellar/src/catalogue/all.rs": 'static GABLE: Entry = Entry { name: "gable" };\n',
    "cellar/src/kernels/mod.rs": "pub mod add;\n",
    "cellar/src/kernels/add.rs": "use crate::Block;\npub fn add(_: Block) {}\n",
    "attic-room/Cargo.toml": '[package]\nname = "attic-room"\n[dependencies]\ncellar.workspace = true\n',
    "attic-room/src/lib.rs": "use cellar::Barrel;\npub struct Roof(Barrel);\nconst SLATES: usize = 9;\n",
}
# One change to the sound house each, the check that must see it, and what the fault must say.
FAULTS = [
    ("cellar/Cargo.toml", "[dependencies]\nattic-room.workspace = true\n", "crates refer downwards", "asks for attic-room"),
    ("cellar/src/base.rs", "use attic_room::Roof;\n", "crates refer downwards", "base.rs:2: cellar names attic-room"),
    ("shed/Cargo.toml", '[package]\nname = "shed"\n', "crates refer downwards", "no floor of the house lists shed"),
    ("cellar/src/kernels/add.rs", "use crate::Barrel;\n", "kernels refer to plain types", "names crate::Barrel"),
    ("cellar/src/kernels/add.rs", "fn f() { crate::empty() }\n", "kernels refer to plain types", "crate::empty"),
    ("cellar/src/base.rs", "// unsafe\nfn f() { unsafe {} }\n", "unsafe is the kernels' alone", "base.rs:3: unsafe"),
    ("cellar/tests/it.rs", "unsafe fn f() {}\n", "unsafe is the kernels' alone", "it.rs:1: unsafe"),
    ("cellar/src/base.rs", "use crate::shelf::Shelf;\n", "modules refer in no circle", "cellar::base, cellar::shelf"),
    ("cellar/src/base.rs", "fn f() { let _ = crate::Barrel; }\n", "modules refer in no circle", "cellar::barrel"),
    ("cellar/src/base.rs", "use super::{shelf as s};\n", "modules refer in no circle", "cellar::shelf"),
    ("cellar/src/base.rs", "const DEPTH: usize = 5;\n", "constants have one value", "DEPTH has 2 values"),
    ("cellar/src/base.rs", "const SLATES: usize = 9 + 1;\n", "constants have one value", "SLATES has 2 values"),
    ("cellar/src/base.rs", "fn f() { const SLATES: u8 = 8; }\n", "constants have one value", "SLATES has 2 values"),
    (
        "cellar/src/base.rs",
        "// says --this\nfn f() -> &'static str {\n    \"give --that\"\n}\n",
        "libraries name no options",
        "base.rs:4: names",
    ),
    (
        "attic-room/src/lib.rs",
        'fn tall(of: &str) -> bool {\n    of == "gable"\n}\n',
        "protocols' entries decide, not their names",
        "lib.rs:5: decides",
    ),
    (
        "attic-room/src/lib.rs",
        'fn tall(of: &str) -> u8 {\n    match of {\n        "hip" | "gable" => 1,\n        _ => 2,\n    }\n}\n',
        "protocols' entries decide, not their names",
        "lib.rs:6: decides",
    ),
    (
        "cellar/src/base.rs",
        'fn f(n: u8) -> String {\n    // {n} keys\n    format!("{n} cold \\\n        keys left")\n}\n',
        "numbers agree with their nouns",
        "base.rs:4: `keys`",
    ),
    ("cellar/src/base.rs", "\n" * 60, "files have a length to read", "base.rs: 61 lines"),
]


class House(unittest.TestCase):
    def faults(self, more=None):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            house = dict(SOUND)
            if more:
                house[more[0]] = house.get(more[0], "") + more[1]
            for name, content in house.items():
                path = root / "crates" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            return check_structure.check(
                root, floors=FLOORS, kernels="cellar/src/kernels/", shared={"Block": ""}, own={}, most=50
            )

    def test_a_sound_house_passes(self):
        self.assertEqual({name: [] for name in self.faults()}, self.faults())

    def test_every_kind_of_fault_is_found(self):
        for file, content, check, said in FAULTS:
            with self.subTest(content=content.strip()):
                found = self.faults((file, content))
                self.assertTrue(any(said in fault for fault in found.pop(check)), f"{check} does not say {said}")

    def test_an_exception_is_one(self):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "crates" / "cellar" / "src"
            source.mkdir(parents=True)
            (source.parent / "Cargo.toml").write_text(SOUND["cellar/Cargo.toml"])
            (source / "lib.rs").write_text("mod a { const X: u8 = 1; }\nmod b { const X: u8 = 2; }\n")
            for own, faults in (({}, 1), ({"a reason": "W X"}, 0)):
                found = check_structure.check(Path(folder), floors=FLOORS, own=own)
                self.assertEqual(len(found["constants have one value"]), faults)

    def test_a_fault_that_is_mended_leaves_the_list(self):
        found = {"circles": ["a: a circle of b", "c: a circle of d"], "lengths": []}
        known = check_structure.without_open(found, ["a: ", "e: "])
        self.assertEqual(known["circles"], ["c: a circle of d"])
        self.assertEqual(known["what is listed as open is"], ["e:  is mended: take it off the list"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
