#!/usr/bin/env python3
"""Tests of `public_surface.py` on pages as rustdoc writes them, and of `python_surface.py`: what is public has its line,
nothing else has, and a change is seen. The Python package of this tree is compared with its file.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import sys
import tempfile
import unittest
from pathlib import Path

import public_surface
import python_surface

META = '<html><head><meta data-rustdoc-version="1.2.3 (abc)"></head><body>'
ITEMS = """<h2 id="structs">Structs</h2><dl class="item-table">
<dt><a class="struct" href="struct.Cup.html" title="struct tea::Cup">Cup</a></dt><dd>See <a href="fn.wash.html">wash</a>.</dd>
<dt><a class="mod" href="pot/index.html">pot</a></dt>
<dt id="reexport.Milk"><code>pub use <a href="../milk/index.html">milk</a>::Milk;</code></dt></dl>"""
CUP = """<pre class="rust item-decl"><code><div class="code-attribute">#[non_exhaustive]</div>pub struct Cup&lt;T&gt; {
    pub size: <a class="primitive" href="x">u64</a>,
    pub of: <a href="y">Vec</a>&lt;T&gt;,
    /* private fields */
}</code></pre>
<h2 id="implementations">Implementations</h2><div id="implementations-list"><details><summary>
<section id="impl-Cup" class="impl"><a class="src rightside" href="s">Source</a><h3 class="code-header">impl Cup</h3></section></summary>
<details><summary><section id="method.fill" class="method"><a class="src rightside" href="s">Source</a>
<h4 class="code-header">pub const fn <a href="#method.fill" class="fn">fill</a>(
    &amp;mut self,
    with: T,
) -&gt; Result&lt;()&gt;<a href="#" class="tooltip" data-notable-ty="Result">ⓘ</a><div class="where">where
    T: Tea,</div></h4></section></summary></details></details></div>
<h2 id="trait-implementations">Trait Implementations</h2><div id="trait-implementations-list">
<details><summary><section class="impl"><h3 class="code-header">impl <a href="c">Clone</a> for Cup</h3></section></summary>
<h4 class="code-header">fn clone(&amp;self) -&gt; Cup</h4></details>
<section class="impl"><h3 class="code-header">impl StructuralPartialEq for Cup</h3></section>
<section class="impl"><h3 class="code-header">impl&lt;'a&gt; Debug for Cup&lt;'a&gt;</h3></section>
<section class="impl"><h3 class="code-header">impl From&lt;Leaf&gt; for Cup</h3></section></div>
<h2 id="synthetic-implementations">Auto Trait Implementations</h2><div id="synthetic-implementations-list">
<section class="impl"><h3 class="code-header">impl Send for Cup</h3></section></div>
<h2 id="blanket-implementations">Blanket Implementations</h2><div id="blanket-implementations-list">
<section class="impl"><h3 class="code-header">impl&lt;T&gt; Any for T</h3></section></div>"""
POUR = """<pre class="rust item-decl"><code>pub trait Pour: Send {
    const MOST: <a href="u">u64</a>;

    // Required method
    fn <a href="#t">pour</a>&lt;C&gt;(
        &amp;self,
        into: C,
    )
       <div class="where">where C: Hold,
             Self: Sized</div>;

    // Provided method
    fn <a href="#h">heat</a>(&amp;mut self) { ... }
}</code></pre>"""
KIND = """<pre class="rust item-decl"><code>pub enum Kind {<details class="toggle"><summary class="hideme"><span>Show 2 variants</span></summary>
    Green(<a href="l">Leaf</a>),
    Black {
        years: u64,
    },
</details>}</code></pre>"""
PAGES = {
    "tacit/index.html": ITEMS,
    "tacit/struct.Cup.html": CUP,
    "tacit/struct.Gone.html": "<pre class='rust item-decl'><code>pub struct Gone;</code></pre>",
    "tacit/fn.wash.html": "<pre class='rust item-decl'><code>pub fn wash()</code></pre>",
    "tacit/pot/index.html": """<dl class="item-table"><dt><a class="trait" href="trait.Pour.html">Pour</a></dt>
<dt><a class="enum" href="enum.Kind.html">Kind</a></dt><dt><a class="type" href="type.Result.html">Result</a></dt>
<dt><a class="constant" href="constant.HOT.html">HOT</a></dt></dl>""",
    "tacit/pot/trait.Pour.html": POUR,
    "tacit/pot/enum.Kind.html": KIND,
    "tacit/pot/type.Result.html": """<pre class="rust item-decl"><code>pub type Result = Result&lt;()&gt;;</code></pre>
<pre class="rust item-decl"><code>pub enum Result {
    Ok(()),
}</code></pre>""",
    "tacit/pot/constant.HOT.html": "<pre class='rust item-decl'><code>pub const HOT: u8 = WARM + 1; // 91u8</code></pre>",
}
LINES = [
    "tacit: mod",
    "tacit: pub use milk::Milk",
    "tacit::Cup: #[non_exhaustive] pub struct Cup<T>",
    "tacit::Cup: /* private fields */",
    "tacit::Cup: impl From<Leaf> for Cup",
    "tacit::Cup: implements Clone, Debug",
    "tacit::Cup::fill: pub const fn fill(&mut self, with: T) -> Result<()> where T: Tea",
    "tacit::Cup::of: pub of: Vec<T>",
    "tacit::Cup::size: pub size: u64",
    "tacit::pot: mod",
    "tacit::pot::HOT: pub const HOT: u8 = WARM + 1",
    "tacit::pot::Kind: pub enum Kind",
    "tacit::pot::Kind::Black: Black { years: u64, }",
    "tacit::pot::Kind::Green: Green(Leaf)",
    "tacit::pot::Pour: pub trait Pour: Send",
    "tacit::pot::Pour::MOST: const MOST: u64",
    "tacit::pot::Pour::heat: fn heat(&mut self) { ... }",
    "tacit::pot::Pour::pour: fn pour<C>(&self, into: C) where C: Hold, Self: Sized",
    "tacit::pot::Result: pub type Result = Result<()>",
]

PACKAGE = {
    "__init__.py": """from . import _cups, leaf as leaf
from ._cups import Cup, hot
from ._native import steep

sum = _cups.sum_
_hidden = 1
__all__ = ["Cup", "hot", "steep"]
""",
    "_cups.py": """class _Held:
    size: int = 3

    def lift(self) -> None: ...
    def _drop(self): ...

@dataclass
class Cup(_Held):
    @property
    def full(self) -> bool: ...
    def __init__(self, size: int = 3): ...
    def __repr__(self): ...

def hot(cup: Cup, *, much: bool = False) -> Cup: ...
def sum_(*cups): ...
def cold(): ...
""",
    "nisc.py": "__all__ = ['ask']\n_LEAST: int = 1\ndef ask(n): ...\n",
}
PACKAGE_LINES = [
    "tacit.Cup.__init__: def(self, size: int=3)",
    "tacit.Cup.full: @property def(self) -> bool",
    "tacit.Cup.lift: def(self) -> None",
    "tacit.Cup.size: int = 3",
    "tacit.Cup: @dataclass class(_Held)",
    "tacit.hot: def(cup: Cup, *, much: bool=False) -> Cup",
    "tacit.nisc.ask: def(n)",
    "tacit.steep",
    "tacit.sum: def(*cups)",
]


def read(pages):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in pages.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(META + text + "</body></html>")
        return public_surface.surface(Path(folder))


class Surface(unittest.TestCase):
    def test_what_is_public_has_its_line_and_nothing_else_has(self):
        version, lines = read(PAGES)
        self.assertEqual(version, "1.2.3 (abc)")
        self.assertEqual(lines, LINES)

    def test_a_change_is_seen(self):
        kept = public_surface.text_of("1.2.3 (abc)", LINES)
        changed = {**PAGES, "tacit/struct.Cup.html": CUP.replace("with: T", "with: &amp;T")}
        said, sound = public_surface.compare(kept, public_surface.text_of(*read(changed)))
        self.assertFalse(sound)
        self.assertIn("-" + LINES[6], said)
        self.assertIn("+" + LINES[6].replace("with: T", "with: &T"), said)
        self.assertEqual(public_surface.compare(kept, public_surface.text_of(*read(PAGES))), ([], True))

    def test_another_release_of_rustdoc_fails_nothing_and_a_file_that_is_missing_does(self):
        built = public_surface.text_of("1.2.3 (abc)", LINES)
        said, sound = public_surface.compare(public_surface.text_of("1.1.0 (abc)", LINES[1:]), built)
        self.assertTrue(sound)
        self.assertIn("+" + LINES[0], said)
        self.assertFalse(public_surface.compare("", built)[1])

    def test_pages_that_are_not_there_have_no_lines(self):
        self.assertEqual(read({}), ("", []))


class Python(unittest.TestCase):
    def test_what_is_public_has_its_line_and_nothing_else_has(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in PACKAGE.items():
                Path(folder, name).write_text(text)
            self.assertEqual(python_surface.surface(folder), PACKAGE_LINES)

    def test_the_package_of_this_tree_is_as_kept(self):
        built = public_surface.text_of_python(python_surface.surface(public_surface.ROOT / "python" / "tacit"))
        self.assertEqual(public_surface.compare(public_surface.PYTHON.read_text(), built), ([], True))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
