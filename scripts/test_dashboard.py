#!/usr/bin/env python3
"""The page of `tacit serve --dashboard`, and its metrics, of a service that granted and refused.

The questions are asked over HTTP, then by headless Chromium: in light and dark, at 400 pixels wide, by keyboard
alone, and while the figures change.

    scripts/test_dashboard.py [--picture FOLDER]

--picture FOLDER  also writes pictures of each look there, whole and its top; the book has `1200-light-top`

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed. Where there is no Chromium (Debian's
package `chromium`) it says so, and tests what does not need it.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from chromium import CHROMIUM, CONTRAST, PATIENCE, Browser, free_port, until

ROOT = Path(__file__).resolve().parent.parent
TACIT = Path(os.environ.get("TACIT", ROOT / "target/debug/tacit"))
# Rows and keys of the tables, none of which may be seen anywhere.
ROWS = re.compile(r"example\.com|user\d")
# Whether the page has its figures.
SHOWS_RUNS = "document.querySelector('#runs-table td') !== null"
PICTURES = None


class Service:
    """A service with a page, three peers, and some requests behind it."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.port, self.page, self.metrics = free_port(), free_port(), free_port()
        for name in ("alice", "bob", "carol", "dave"):
            self.tacit("keygen", "--out", f"{name}.key")
        table = lambda head, rows: f"{head},amount\n" + "".join(f"user{i}@example.com,{i}\n" for i in rows)
        (self.path / "customers.csv").write_text(table("email", range(4000)))
        (self.path / "kunden.csv").write_text(table("mail", range(2000, 5000)))
        (self.path / "policy.toml").write_text(f"""
version = 1
listen = "127.0.0.1:{self.port}"
identity = "alice.key"
state = "state"

[peers.northwind-insurance]
key = "bob.pub"
[peers.contoso]
key = "carol.pub"
[peers.fabrikam]
key = "dave.pub"

[sources.customers]
input = "customers.csv"
key = ["email"]
rows_in_total = 16_000
aggregate_runs = 12

[jobs.suppress]
source = "customers"
allow = ["northwind-insurance", "contoso"]
reveal = ["rows"]
result = ["peer"]
max_peer_keys = 1_000_000
runs_a_day = 10
purpose = "suppression of common customers"

[jobs.overlap]
source = "customers"
allow = ["northwind-insurance", "fabrikam"]
reveal = ["count"]
result = ["both"]
security = "semi-honest"
max_peer_keys = 2_500
runs_a_day = 2
output = "results"
""")
        self.log = open(self.path / "log", "w")
        self.process = subprocess.Popen(
            [TACIT, "serve", "--policy", "policy.toml", "--dashboard", f"127.0.0.1:{self.page}"]
            + ["--metrics", f"127.0.0.1:{self.metrics}"],
            cwd=self.path, stdout=self.log, stderr=self.log,
        )
        until(lambda: "dashboard" in (self.path / "log").read_text(), "no service")
        (self.path / "few.csv").write_text(table("mail", range(1000, 2500)))
        for _ in range(2):
            self.ask("bob", "suppress")
        self.ask("carol", "suppress")
        self.ask("bob", "overlap", "--security", "semi-honest", "--input", "few.csv")
        self.ask("dave", "suppress", refused="allow")
        self.ask("dave", "no-such-job-<img src=x onerror=alert(1)>", refused="allow")
        self.ask("dave", "overlap", "--security", "semi-honest", refused="max_peer_keys")
        self.ask("bob", "suppress", "--dry-run")

    def tacit(self, *words, code=0):
        run = subprocess.run([TACIT, *words], cwd=self.path, capture_output=True, text=True)
        if run.returncode != code:
            raise RuntimeError(f"{words}: {run.returncode} {run.stdout} {run.stderr}")
        return run.stdout + run.stderr

    def ask(self, who, job, *more, refused=None):
        words = ["--json", "request", job, "--connect", f"127.0.0.1:{self.port}", "--identity", f"{who}.key"]
        words += ["--peer", "alice.pub", "--key", "mail", *more]
        words += [] if "--input" in more else ["--input", "kunden.csv"]
        words += [] if "--dry-run" in more else ["--yes"]
        said = self.tacit(*words, code=4 if refused else 0)
        if refused and f"`{refused}`" not in said:
            raise RuntimeError(said)

    def get(self, target, port=None, method="GET", host=None):
        """(code, headers, body) of one question."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.page, timeout=PATIENCE)
        connection.putrequest(method, target, skip_host=host is not None)
        if host:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, body

    def state(self):
        return json.loads(self.get("/data.json")[2])

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.log.close()
        self.folder.cleanup()


SERVICE = None
BROWSER = None


class Questions(unittest.TestCase):
    def test_the_page_is_for_this_machine_alone(self):
        for host in (f"127.0.0.1:{SERVICE.page}", f"localhost:{SERVICE.page}", "localhost:8080", "[::1]"):
            self.assertEqual(SERVICE.get("/data.json", host=host)[0], 200, host)
        for host in ("evil.example", f"evil.example:{SERVICE.page}", f"127.0.0.1.evil.example:{SERVICE.page}", "192.0.2.1"):
            code, _, body = SERVICE.get("/data.json", host=host)
            self.assertEqual(code, 421, host)
            self.assertNotIn("northwind", body)
        for address in ("0.0.0.0:7780", "192.0.2.1:7780", "[::]:7780"):
            for option in ("--dashboard", "--metrics"):
                said = SERVICE.tacit("serve", "--policy", "policy.toml", option, address, code=2)
                self.assertIn("is reachable from other machines", said)
                self.assertIn(option, said)

    def test_nothing_can_be_changed(self):
        before = SERVICE.state()
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            for target in ("/", "/data.json"):
                code, headers, _ = SERVICE.get(target, method=method)
                self.assertEqual((code, headers["Allow"]), (405, "GET, HEAD"), method)
        code, headers, body = SERVICE.get("/data.json", method="HEAD")
        self.assertEqual((code, body), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 1000)
        after = SERVICE.state()
        for one in (before, after):
            del one["service"]["now"], one["throughput"]
        self.assertEqual(before, after)

    def test_it_loads_nothing_from_elsewhere(self):
        for target, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript"),
                             ("/icon.svg", "image/svg+xml"), ("/data.json", "application/json")):
            code, headers, body = SERVICE.get(target)
            self.assertEqual((code, headers["Content-Type"].split(";")[0]), (200, kind))
            policy = headers["Content-Security-Policy"]
            for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
                self.assertIn(rule, policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            links = set(re.findall(r"\w+://[^\s\"'<>]+", body)) - {"http://www.w3.org/2000/svg"}
            self.assertEqual(links, set(), target)
        self.assertEqual(SERVICE.get("/../policy.toml")[0], 404)
        self.assertEqual(SERVICE.get("/state/records/private.jsonl")[0], 404)

    def test_figures_are_those_of_the_service(self):
        state = SERVICE.state()
        self.assertEqual([run["state"] for run in state["runs"]].count("done"), 4)
        self.assertEqual(state["runs"][0]["state"], "declined")
        done = state["runs"][-1]
        self.assertEqual((done["client_keys"], done["service_keys"]), (3000, 4000))
        self.assertGreater(done["sent"], 1000)
        rules = {one["rule"]: one["count"] for one in state["refusals"]["rules"]}
        self.assertEqual(rules, {"allow": 2, "max_peer_keys": 1})
        budgets = {(one["peer"], one["of"], one["budget"]): (one["used"], one["most"]) for one in state["budgets"]}
        bob = "northwind-insurance"
        self.assertEqual(budgets[bob, "job suppress", "runs_a_day"], (2, 10))
        self.assertEqual(budgets[bob, "source customers", "rows_in_total"], (12000, 16000))
        self.assertEqual(budgets[bob, "source customers", "aggregate_runs"], (1, 12))
        self.assertEqual(budgets["fabrikam", "job overlap", "runs_a_day"], (0, 2))
        lines = (SERVICE.path / "state/records/records.jsonl").read_text().splitlines()
        self.assertEqual((state["records"]["count"], len(lines)), (4, 4))
        self.assertEqual(state["records"]["latest"][0]["run"], json.loads(lines[-1])["common"]["run"])
        self.assertEqual(state["records"]["outcomes"], {"complete": 4})
        self.assertEqual(state["throughput"]["total"]["done"], 4)

    def test_records_are_saved_as_they_are_and_jobs_say_what_for(self):
        code, headers, body = SERVICE.get("/records.jsonl")
        self.assertEqual((code, headers["Content-Disposition"]), (200, 'attachment; filename="records.jsonl"'))
        self.assertEqual(body, (SERVICE.path / "state/records/records.jsonl").read_text())
        self.assertEqual(SERVICE.get("/records.jsonl", host="evil.example")[0], 421)
        (SERVICE.path / "saved.jsonl").write_text(body)
        self.assertIn("4", SERVICE.tacit("audit", "verify", "saved.jsonl", "--key", "alice.pub"))
        jobs = {one["job"]: one for one in SERVICE.state()["jobs"]}
        self.assertEqual(jobs["suppress"]["purpose"], "suppression of common customers")
        self.assertEqual(jobs["overlap"]["peers"], ["fabrikam", "northwind-insurance"])

    def test_metrics_are_those_of_the_service(self):
        code, headers, body = SERVICE.get("/metrics", port=SERVICE.metrics)
        self.assertEqual((code, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        samples = {}
        for line in body.splitlines():
            if not line.startswith("#"):
                found = re.fullmatch(r'(\w+)(?:\{(\w+)="([^"\\]*)"\})? (\d+)', line)
                self.assertIsNotNone(found, line)
                self.assertIn(f"# TYPE {found[1]} ", body)
                samples[found[1], found[3]] = int(found[4])
        self.assertEqual(samples["tacit_events_total", "done"], 4)
        self.assertEqual(samples["tacit_refusals_total", "max_peer_keys"], 1)
        self.assertEqual(samples["tacit_draining", None], 0)
        self.assertNotIn("northwind", body)
        self.assertEqual(SERVICE.get("/healthz", port=SERVICE.metrics)[::2], (200, "ok\n"))

    def test_no_row_and_no_key_is_told(self):
        told = json.dumps(SERVICE.state()) + SERVICE.get("/")[2] + SERVICE.get("/metrics", port=SERVICE.metrics)[2]
        told += (SERVICE.path / "log").read_text()
        self.assertEqual(ROWS.findall(told), [])
        private = (SERVICE.path / "state/records/private.jsonl").read_text()
        salts = re.findall(r'salt":"(\w{64})"', private)
        self.assertEqual(len(salts), 8)
        self.assertEqual([salt for salt in salts if salt in told], [])


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Pages(unittest.TestCase):
    def setUp(self):
        BROWSER.look()
        BROWSER.open(f"http://127.0.0.1:{SERVICE.page}/", SHOWS_RUNS, "the page shows no run")

    def faults(self):
        """What the browser complained of."""
        found = []
        for event in BROWSER.events:
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
                # A page of elsewhere, of an earlier test, may still be told that its icon is not here.
                if "//evil.example" not in event["params"]["entry"].get("url", ""):
                    found.append(event["params"]["entry"])
            if event["method"] in ("Runtime.exceptionThrown", "Network.loadingFailed", "Page.javascriptDialogOpening"):
                # The last page's question of that moment, which going to the next one ends.
                if not event["params"].get("canceled"):
                    found.append(event)
        return found

    def test_it_shows_what_happened_and_breaks_none_of_its_own_rules(self):
        text = BROWSER.run("document.body.innerText")
        for words in ("northwind-insurance", "12,000 of 16,000", "3,000 / 4,000", "max_peer_keys", "4 complete", "open",
                      "the client has more keys than the job takes", "suppression of common customers"):
            self.assertIn(words, text)
        self.assertIn("no-such-job-<img src=x", text)
        self.assertEqual(BROWSER.run("document.querySelectorAll('main img, main script').length"), 0)
        self.assertEqual(ROWS.findall(text), [])
        self.assertEqual(self.faults(), [])
        asked = {event["params"]["request"]["url"] for event in BROWSER.events
                 if event["method"] == "Network.requestWillBeSent"}
        self.assertEqual({url.split("/")[2] for url in asked}, {f"127.0.0.1:{SERVICE.page}"})

    def test_it_is_legible_in_light_and_dark_and_on_a_narrow_screen(self):
        for width in (1200, 400, 320):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    BROWSER.look(width, 900, dark)
                    if PICTURES:
                        BROWSER.run("document.querySelector('details').open = false")
                        BROWSER.picture(PICTURES / f"dashboard-{width}-{'dark' if dark else 'light'}.png")
                        BROWSER.look(width, 1180, dark)
                        name = f"dashboard-{width}-{'dark' if dark else 'light'}-top.png"
                        BROWSER.picture(PICTURES / name, whole=False)
                    BROWSER.run("document.querySelector('details').open = true")
                    wide = BROWSER.run("[document.scrollingElement.scrollWidth, innerWidth]")
                    self.assertLessEqual(wide[0], width)
                    beyond = BROWSER.run("""[...document.querySelectorAll('main *, header *')].filter(e => {
                        const box = e.getBoundingClientRect();
                        return box.width && (box.right > innerWidth + 0.5 || e.scrollWidth > e.clientWidth + 1
                            && getComputedStyle(e).overflowX !== 'visible' && !e.matches('.bar'));
                    }).filter(e => !e.closest('thead')).map(e => e.outerHTML.slice(0, 80))""")
                    self.assertEqual(beyond, [])
                    worst = BROWSER.run(CONTRAST)
                    self.assertGreaterEqual(worst[0], 4.5, worst)
        BROWSER.look(400, 900)
        # Laid out as cards, they are tables still.
        tree = BROWSER.say("Accessibility.getFullAXTree")["nodes"]
        roles = [node["role"]["value"] for node in tree if not node.get("ignored")]
        self.assertGreaterEqual(roles.count("table"), 6)
        self.assertGreater(roles.count("cell"), 60)
        self.assertGreater(roles.count("columnheader"), 30)

    def test_all_of_it_is_reached_and_worked_by_keyboard(self):
        self.assertEqual(BROWSER.run("""[...document.querySelectorAll('*')].filter(e => e.tabIndex > 0
            || e.onclick || e.getAttribute('onclick')).length"""), 0)
        # Whatever listens to a click is something that a keyboard can press.
        listening = BROWSER.run("""[...document.querySelectorAll('*')].map((e, i) => (e.dataset.at = i,
            e.matches('a[href], button, select, summary, label')))""")
        for at, pressable in enumerate(listening):
            if not pressable:
                thing = BROWSER.say("Runtime.evaluate", expression=f"document.querySelector('[data-at=\"{at}\"]')")
                listeners = BROWSER.say("DOMDebugger.getEventListeners", objectId=thing["result"]["objectId"])
                kinds = {one["type"] for one in listeners["listeners"]}
                self.assertEqual(kinds & {"click", "mousedown", "mouseup", "mouseover", "pointerdown"}, set())
        wanted = BROWSER.run("""[...document.querySelectorAll('a[href], button, select, summary')]
            .map(e => e.dataset.at)""")
        BROWSER.run("document.body.focus(); getSelection().removeAllRanges()")
        reached = []
        for _ in wanted:
            BROWSER.press("Tab")
            at, ring, inside = BROWSER.run("""(() => { const e = document.activeElement, box = e.getBoundingClientRect();
                return [e.dataset.at, getComputedStyle(e).outlineStyle, box.top >= 0 && box.bottom <= innerHeight]; })()""")
            reached.append(at)
            self.assertEqual((ring, inside), ("solid", True), f"the focus on {at} is not seen")
        self.assertEqual(reached, wanted, "the order of the focus is not that of the page")
        BROWSER.press("Tab", shift=True)
        self.assertEqual(BROWSER.run("document.activeElement.dataset.at"), wanted[-2])

        focus = lambda selector: BROWSER.run(f"document.querySelector('{selector}').focus()")
        focus(".skip")
        BROWSER.press("Enter", text="\r")
        self.assertEqual(BROWSER.run("document.activeElement.id"), "main")
        focus("nav a[href=\"#records\"]")
        BROWSER.press("Enter", text="\r")
        self.assertEqual(BROWSER.run("document.activeElement.id"), "records")
        focus("#pause")
        BROWSER.press(" ", "Space", " ")
        self.assertEqual(BROWSER.run("document.querySelector('#pause').getAttribute('aria-pressed')"), "true")
        BROWSER.press("Enter", text="\r")
        self.assertEqual(BROWSER.run("document.querySelector('#pause').getAttribute('aria-pressed')"), "false")
        focus("summary")
        BROWSER.press("Enter", text="\r")
        self.assertTrue(BROWSER.run("document.querySelector('details').open"))
        focus("#filter")
        BROWSER.press("End")
        until(lambda: BROWSER.run("document.querySelector('#filter').value") == "declined", "no choice by keyboard")
        self.assertEqual(BROWSER.run("document.querySelector('#runs-table').tBodies[0].rows.length"), 1)
        # Every control and every section has a name.
        tree = BROWSER.say("Accessibility.getFullAXTree")["nodes"]
        for node in tree:
            if node.get("role", {}).get("value") in ("button", "combobox", "link", "region", "image", "table"):
                self.assertTrue(node.get("name", {}).get("value"), node)
        heads = BROWSER.run("[...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
        self.assertTrue(heads[0] == 1 and all(b <= a + 1 for a, b in zip(heads, heads[1:])), heads)

    def test_fresh_figures_come_and_nothing_jumps(self):
        # Chromium marks what moves within half a second of a change of the window's size, and may tell of it late.
        BROWSER.run("""(() => { new PerformanceObserver(list => list.getEntries().filter(one => !one.hadRecentInput)
            .forEach(one => window.shift += one.value)).observe({ type: 'layout-shift', buffered: false }); })()""")
        frames = "for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);"
        for width in (1200, 400):
            BROWSER.look(width, 700)
            BROWSER.run(f"""(async () => {{ document.querySelector('#peers').scrollIntoView();
                window.watched = document.querySelector('#peers-table tbody tr');
                document.querySelector('#filter').focus({{ preventScroll: true }});
                await new Promise(settled => setTimeout(settled, 600));
                {frames} window.shift = 0; }})()""")
            place = "[window.watched.getBoundingClientRect().top, document.activeElement.id, window.watched.isConnected]"
            before = BROWSER.run(place)
            figure = "document.querySelector('#hour-refused').textContent"
            refused = int(BROWSER.run(figure))
            SERVICE.ask("dave", "suppress", refused="allow")
            until(lambda: int(BROWSER.run(figure)) == refused + 1, "no fresh figures")
            after = BROWSER.run(place)
            self.assertLess(abs(after[0] - before[0]), 2, (width, before, after))
            self.assertEqual(after[1:], before[1:])
            self.assertLess(BROWSER.run(f"(async () => {{ {frames} return window.shift; }})()"), 0.02)
        self.assertEqual(self.faults(), [])

    def test_the_first_figures_move_nothing(self):
        address = f"http://127.0.0.1:{SERVICE.page}/"
        for width in (1200, 400):
            BROWSER.look(width, 700)
            time.sleep(0.6)
            for target in (address, address + "#peers"):
                BROWSER.say("Page.navigate", url="about:blank")
                BROWSER.open(target, SHOWS_RUNS, "the page shows no run")
                self.assertEqual(BROWSER.run("getComputedStyle(document.querySelector('main')).visibility"), "visible")
                moved = BROWSER.run("""new Promise(told => {
                    new PerformanceObserver(list => told(list.getEntries().reduce((all, one) => all + one.value, 0)))
                        .observe({ type: 'layout-shift', buffered: true });
                    setTimeout(() => told(0), 500); })""")
                self.assertLess(moved, 0.02, (width, target))
        self.assertEqual(self.faults(), [])

    def test_a_policy_with_faults_is_told_until_it_is_mended(self):
        policy = SERVICE.path / "policy.toml"
        sound = policy.read_text()
        seen = "document.querySelector('#faults').checkVisibility() && document.querySelector('#faults').innerText"
        self.assertFalse(BROWSER.run(seen))
        try:
            policy.write_text(sound.replace("runs_a_day = 10", "runs_a_day = <b>", 1).replace("aggregate_runs = 12", ""))
            SERVICE.process.send_signal(signal.SIGHUP)
            until(lambda: "line " in (BROWSER.run(seen) or ""), "faults are not shown")
            self.assertIn("remains active", BROWSER.run(seen))
        finally:
            policy.write_text(sound)
            SERVICE.process.send_signal(signal.SIGHUP)
        until(lambda: not BROWSER.run(seen), "faults stay")
        self.assertEqual(self.faults(), [])

    def test_a_page_from_elsewhere_sees_nothing(self):
        seen = BROWSER.run(f"""fetch('http://localhost:{SERVICE.page}/data.json').then(() => 'read', e => 'refused')""")
        self.assertEqual(seen, "refused", "another name is another origin")
        # A name of elsewhere that leads here is the origin that its page came from, but none of ours.
        for target in ("", "data.json"):
            BROWSER.say("Page.navigate", url=f"http://evil.example:{SERVICE.page}/{target}")
            until(lambda: BROWSER.run("document.readyState === 'complete' && location.host.startsWith('evil')"), "no page")
            self.assertIn("only for this machine", BROWSER.run("document.body.innerText"))


class TheEnd(unittest.TestCase):
    """Runs last: the service goes."""

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_a_page_whose_service_is_gone_says_so(self):
        BROWSER.look()
        BROWSER.open(f"http://127.0.0.1:{SERVICE.page}/", SHOWS_RUNS, "the page shows no run")
        SERVICE.process.terminate()
        self.assertEqual(SERVICE.process.wait(PATIENCE), 0)
        until(lambda: "does not answer" in BROWSER.run("document.querySelector('#lost').textContent"), "not told")
        self.assertIn("12,000 of 16,000", BROWSER.run("document.body.innerText"))


if __name__ == "__main__":
    if not TACIT.exists():
        sys.exit(f"{TACIT} is not there: cargo build makes it")
    if "--picture" in sys.argv:
        at = sys.argv.index("--picture")
        PICTURES = Path(sys.argv[at + 1])
        PICTURES.mkdir(parents=True, exist_ok=True)
        del sys.argv[at : at + 2]
    if not CHROMIUM:
        print("skipped: no Chromium here (apt-get install chromium), so the page is not looked at")
    SERVICE = Service()
    BROWSER = Browser() if CHROMIUM else None
    try:
        unittest.TestLoader.sortTestMethodsUsing = None
        suite = unittest.TestSuite(
            unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in (Questions, Pages, TheEnd)
        )
        result = unittest.TextTestRunner(verbosity=0).run(suite)
    finally:
        if BROWSER:
            BROWSER.end()
        SERVICE.end()
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - len(result.skipped) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
