#!/usr/bin/env python3
"""What `tacit bench report` looks like in a headless Chromium: phone and desktop, light and dark, with 0, 1 and 1,000 results.

TACIT names the command to test; without it, it is built.

Ends with `N passed, N failed`. Without a Chromium it says so and runs nothing.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
PHONE, DESKTOP = (390, 844), (1280, 900)
LINKS = ["10/5", "100/5", "1000/5", "loopback"]

# Runs in the page: what a reader would see of it.
PROBE = """<script>
const box = e => e.getBoundingClientRect();
const text = [...document.querySelectorAll('svg text')].map(t => {
  const svg = t.ownerSVGElement, scale = box(svg).width / svg.viewBox.baseVal.width;
  return parseFloat(getComputedStyle(t).fontSize) * scale;
});
const outside = [...document.querySelectorAll('svg text')].filter(t => {
  const b = t.getBBox(), v = t.ownerSVGElement.viewBox.baseVal;
  return !t.hasAttribute('transform') && (b.x < -1 || b.x + b.width > v.width + 1);
}).length;
const found = {
  width: document.documentElement.scrollWidth, window: innerWidth, text: Math.min(99, ...text), outside,
  background: getComputedStyle(document.body).backgroundColor, colour: getComputedStyle(document.body).color,
  svgBackground: [...document.querySelectorAll('svg')].map(s => getComputedStyle(s).backgroundColor),
  points: [...document.querySelectorAll('figure[id*="-by-"] .numbers tbody tr')]
    .map(row => [row.cells[1].textContent, row.cells[2].textContent]),
  markers: [...document.querySelectorAll('figure[id*="-by-"]')].map(f =>
    [...f.querySelectorAll('svg circle, svg polygon, svg rect')].filter(m => box(m).width > 0).length
    - f.querySelectorAll('.numbers tbody tr').length),
  first: [...document.querySelectorAll('.first')].map(f => box(f).bottom),
  rows: document.querySelectorAll('#all tbody tr').length, errors: document.querySelectorAll('parsererror').length,
};
document.body.innerHTML = '<pre id="found"></pre>';
document.getElementById('found').textContent = JSON.stringify(found);
</script>"""


def result(i):
    """A made-up result; a thousand of them have every plot."""
    paper = {"table": f"table-{i % 20}", "row": f"row {i} with <b>marks</b> & more", "paper": 100.0, "ours": 50.0, "unit": "ms"}
    return {
        "name": "ot", "protocol": ["kos", "iknp", "ferret"][i % 3], "security": "malicious", "kind": "cot",
        "count": 1000 * 10 ** (i % 4), "threads": 1, "link": LINKS[i // 12 % 4], "repeat": 3, "setup_ms": 2.0,
        "offline_ms": 1.0 + i, "online_ms": 3.0, "wall_ms": 4.0 + i, "wall_ms_min": 3.0, "wall_ms_max": 5.0 + i,
        "ns_per_item": 10.5 + i, "bytes_sent": 1000 + i, "peak_rss_bytes": 8 << 20, "kernels": "avx2", "commit": "c", "machine": "m",
        **(paper if i % 10 == 9 else {}),
    }  # fmt: skip


def tacit(*words, cwd):
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "run", "--quiet", "--package", "tacit-cli", "--manifest-path", ROOT / "Cargo.toml", "--"]
    if "TACIT" in os.environ:
        command = [Path(os.environ["TACIT"]).resolve()]
    subprocess.run([*command, *words], cwd=cwd, check=True, stdout=subprocess.PIPE)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = Path(cls.folder.name)
        for count in (0, 1, 1000):
            lines = "".join(json.dumps(result(i)) + "\n" for i in range(count))
            (cls.path / f"{count}.jsonl").write_text(lines)
            tacit("bench", "report", f"{count}.jsonl", "--output", f"{count}.html", cwd=cls.path)

    def see(self, count, size, dark=False):
        page = self.path / f"{count}.html"
        probed = self.path / f"probed-{count}.html"
        probed.write_text(page.read_text().replace("</body>", PROBE + "</body>"))
        # A window narrower than 500 is not to be had; a frame of the wanted width is, in a page of our own.
        frame = self.path / "frame.html"
        source = html.escape(probed.read_text(), quote=True)
        frame.write_text(f'<iframe style="border:0;width:{size[0]}px;height:{size[1]}px" srcdoc="{source}"></iframe>'
            "<script>onload = () => { document.title = 'done'; document.body.append(document.querySelector('iframe')"
            ".contentDocument.getElementById('found').cloneNode(true)) }</script>")  # fmt: skip
        words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", "--dump-dom"]
        if dark:
            words.append("--blink-settings=preferredColorScheme=0")
        out = subprocess.run([*words, f"file://{frame}"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        found = re.search(r'<pre id="found">(.*?)</pre>', out.stdout.decode(), re.DOTALL)
        self.assertTrue(found, "the page's script did not run")
        return json.loads(html.unescape(found[1]))

    def test_it_fits_phones_and_desktops(self):
        for count in (0, 1, 1000):
            for size in (PHONE, DESKTOP):
                with self.subTest(count=count, size=size):
                    seen = self.see(count, size)
                    self.assertEqual(seen["window"], size[0])
                    self.assertLessEqual(seen["width"], seen["window"], "the page scrolls sideways")
                    self.assertGreaterEqual(seen["text"], 10, "text of a plot is too small to read")
                    self.assertEqual((seen["outside"], seen["errors"]), (0, 0))
                    self.assertEqual(seen["rows"], count)

    def test_light_and_dark_differ_and_contrast(self):
        def luminance(colour):
            return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 765

        light, dark = self.see(1000, DESKTOP), self.see(1000, DESKTOP, dark=True)
        for seen, bright in ((light, True), (dark, False)):
            background = luminance(seen["background"])
            self.assertEqual(background > 0.5, bright)
            self.assertGreater(abs(background - luminance(seen["colour"])), 0.6)
            self.assertEqual(set(seen["svgBackground"]), {seen["background"]})

    def test_points_carry_the_numbers(self):
        def number(text):
            return float(text.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1)

        seen = self.see(1000, DESKTOP)
        self.assertTrue(seen["points"])
        # Each point has a marker that is seen (and each line one more, in the names below).
        self.assertTrue(all(more > 0 for more in seen["markers"]), seen["markers"])
        results = [result(i) for i in range(1000)]
        known = {(float(r["link"].split("/")[0]), r["ns_per_item"]) for r in results if r["link"] != "loopback"}
        known |= {(float(r["count"]), figure) for r in results for figure in (r["wall_ms"], r["bytes_sent"], 8.0)}
        for x, y in seen["points"]:
            close = [k for k in known if k[0] == number(x) and abs(k[1] - number(y)) <= 0.006 * k[1]]
            self.assertTrue(close, (x, y))

    def test_the_answer_stands_on_the_first_screen(self):
        first = self.see(1000, DESKTOP)["first"]
        self.assertEqual(len(first), 1)
        self.assertLessEqual(first[0], DESKTOP[1])


if __name__ == "__main__":
    if BROWSER is None:
        print("no Chromium here (Debian: chromium): the report was not looked at")
        print("0 passed, 0 failed")
        sys.exit(0)
    outcome = unittest.TextTestRunner(stream=sys.stdout).run(unittest.defaultTestLoader.loadTestsFromTestCase(Report))
    broken = len(outcome.failures) + len(outcome.errors)
    print(f"{outcome.testsRun - min(broken, outcome.testsRun)} passed, {broken} failed")
    sys.exit(1 if broken else 0)
