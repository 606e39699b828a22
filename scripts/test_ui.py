#!/usr/bin/env python3
"""The page of `tacit ui`: two pages that go the whole way together, and what else may be sent to one.

Two commands serve a page each, two headless Chromiums open them: one invites, the other joins, both see the
terms, and the result is the plain join of both files. Then: wrong codes, hostile cells, a page of another origin,
a wrong host and a wrong token (also by plain HTTP), a tab that is closed, a run that is cancelled, both languages,
a narrow screen, the keyboard.

    scripts/test_ui.py [--picture FOLDER]

--picture FOLDER  also writes pictures of the steps there, of tables without hostile cells; the book has `ui-ask` and
                  `ui-result`

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed. Where there is no Chromium (Debian's
package `chromium`) it says so, and tests what does not need it.
"""

import csv
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from chromium import CHROMIUM, CONTRAST, PATIENCE, Browser, free_port, until

ROOT = Path(__file__).resolve().parent.parent
TACIT = Path(os.environ.get("TACIT", ROOT / "target/debug/tacit"))
WORDS = ROOT / "crates/tacit-ui/src/page/words"
PICTURES = None
READY = "!document.body.classList.contains('new') && document.querySelector('#where').textContent !== ''"
STEPS = ["file", "partner", "ask", "run", "history", "service"]
# Cells and names that would run if they became markup.
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


class Page:
    """One `tacit ui` in a folder of its own."""

    def __init__(self, home, name):
        self.home = home / name
        self.home.mkdir()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [TACIT, "ui", "--json", "--listen", "127.0.0.1:0"], cwd=self.home, stdout=subprocess.PIPE, text=True,
        )
        said = json.loads(self.process.stdout.readline())
        self.address, self.token = said["address"].split("#")
        self.port = int(re.search(r":(\d+)/", self.address)[1])
        self.link = said["address"]

    def ask(self, target, method="GET", body=None, **headers):
        """(code, headers, body) of a request with token, host and origin as the page sends them, or `headers`."""
        given = {"Host": f"127.0.0.1:{self.port}", "X-Tacit-Token": self.token}
        if method == "POST":
            given |= {"Origin": self.address.rstrip("/"), "Content-Type": "application/json"}
            given |= {"Content-Length": str(len(body or b""))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        try:
            if body:
                connection.send(body)
        except BrokenPipeError:
            pass
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, said

    def post(self, target, value, **headers):
        code, _, said = self.ask(target, "POST", json.dumps(value).encode(), **headers)
        return code, json.loads(said) if said.startswith("{") else said

    def get(self, target):
        return json.loads(self.ask(target)[2])

    def tasks(self, kind):
        return [task for task in self.get("/api/state")["tasks"] if task["kind"] == kind]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code


class Tab(Browser):
    """A browser, with what a person does on the page."""

    def go(self, page, hash=""):
        # From elsewhere: another # alone would load nothing.
        self.say("Page.navigate", url="about:blank")
        self.open(page.link, READY, "no page")
        if hash:
            self.turn(hash)

    def turn(self, step):
        self.run(f"location.hash = '#{step}'")
        until(lambda: self.sees(f"#{step}"), f"no step {step}")

    def sees(self, selector):
        return self.run(f"(e => Boolean(e) && e.checkVisibility())(document.querySelector({json.dumps(selector)}))")

    def text(self, selector):
        """What a person reads there: nothing where it is not shown."""
        return self.run(f"(e => e && e.checkVisibility() ? e.innerText : '')(document.querySelector({json.dumps(selector)}))")

    def fill(self, **fields):
        for name, value in fields.items():
            name = name.replace("_", "-")
            self.run(f"""(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event('input', {{ bubbles: true }}));
                e.dispatchEvent(new Event('change', {{ bubbles: true }})); }})(document.getElementById('{name}'))""")

    def click(self, selector):
        until(lambda: self.run(f"""(e => Boolean(e) && e.checkVisibility() && !e.disabled)
            (document.querySelector({json.dumps(selector)}))"""), f"{selector} cannot be pressed")
        self.say("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)}).click()", userGesture=True)

    def waits(self, selector, text, complaint=None):
        try:
            until(lambda: text in (self.text(selector) or ""), "")
        except AssertionError:
            raise AssertionError(f"{complaint or selector}: {self.text(selector)!r} has no {text!r}; {self.text('main')}") from None

    def read(self, path):
        self.turn("file")
        self.fill(path=str(path))
        self.click("#file-form [type=submit]")
        until(lambda: self.sees("#columns") or self.sees("#file-fault"), "the table is not read")

    def shot(self, name, height=900):
        """A picture for the book, with a home as people have it."""
        if not PICTURES:
            return
        self.look(1200, height)
        self.run(f"""(() => {{ const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll({json.dumps(str(HOME))}, '/home');
            document.activeElement.blur(); }})()""")
        self.picture(PICTURES / f"{name}.png", whole=False)
        self.look()

    def faults(self):
        """What the browser complained of."""
        found = []
        for event in self.events:
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
                # What the command refuses is shown on the page, and logged by the browser too.
                if "the server responded with a status of 4" not in event["params"]["entry"]["text"]:
                    found.append(event["params"]["entry"])
            if event["method"] in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening"):
                found.append(event)
        return found


HOME = None
ALICE = BOB = None
TABS = []


def seen():
    """What the page shows of the hostile cells, as text."""
    return "points" if PICTURES else "<img src=x"


def tables():
    """Two files with hostile names and cells, and the rows of the second whose key is in the first."""
    note, points = (HOSTILE, HOSTILE) if not PICTURES else ("n200", "points")
    alice = [{"email": f"User{i}@example.com", "amount": i, "city": ["Bonn", "Köln"][i % 2]} for i in range(300)]
    bob = [{"Mail": f"user{i}@example.com ", "note": note if i == 200 else f"n{i}", points: i} for i in range(200, 450)]
    for name, rows in (("alice", alice), ("bob", bob)):
        with open(HOME / f"{name}.csv", "w", newline="") as file:
            out = csv.DictWriter(file, rows[0].keys())
            out.writeheader()
            out.writerows(rows)
    keys = {row["email"].lower() for row in alice}
    return [row for row in bob if row["Mail"].strip().lower() in keys]


class Asking(unittest.TestCase):
    """Requests by plain HTTP: what may be asked, by whom."""

    def test_a_wrong_token_host_or_origin_is_refused(self):
        for token in (None, "", "0" * 32, ALICE.token[:-1], ALICE.token + "0", ALICE.token.upper()):
            code, _, said = ALICE.ask("/api/state", X_Tacit_Token=token)
            self.assertEqual((code, "partners" in said), (403, False), token)
        self.assertEqual(ALICE.ask("/api/state")[0], 200)
        port = ALICE.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
            self.assertEqual(ALICE.ask("/", Host=host)[0], 200, host)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}"):
            for target in ("/", "/main.js", "/api/state"):
                self.assertEqual(ALICE.ask(target, Host=host)[0], 421, host)
        before = len(ALICE.get("/api/state")["tasks"])
        form = {"kind": "check", "file": "/etc/hostname"}
        own = f"http://127.0.0.1:{port}"
        wrong = [{"Origin": origin} for origin in (None, "null", "", "http://evil.example", f"https://127.0.0.1:{port}", own + "0")]
        wrong += [{"Sec_Fetch_Site": site} for site in ("cross-site", "same-site", "none")]
        for headers in wrong:
            for target in ("/api/start", "/api/cancel", "/api/ticket", "/api/upload?name=a"):
                code, _ = ALICE.post(target, form, **headers)
                self.assertEqual(code, 403, (target, headers))
        code, _ = ALICE.post("/api/start", form, Content_Type="text/plain")
        self.assertEqual(code, 415)
        self.assertEqual(len(ALICE.get("/api/state")["tasks"]), before)

    def test_no_file_but_the_page_s_own_is_served(self):
        for target in ("/../Cargo.toml", "/keys/tacit.key", "/file/x", "/file/../keys/tacit.key", "/api/preview?id=1&name=../run.json",
                       "/api/preview?id=0&name=result.csv", "/api/none", "/words/../main.js", "//etc/passwd"):
            self.assertEqual(ALICE.ask(target)[0], 404, target)
        for name in ("../../keys/tacit.key", "run.json", "question.sql", "", None):
            self.assertEqual(ALICE.post("/api/ticket", {"id": 1, "name": name})[0], 404, name)
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            self.assertEqual(ALICE.ask("/", method)[0], 405, method)

    def test_every_answer_has_its_guards(self):
        for target in ("/", "/main.js", "/page.css", "/words/de.json", "/api/state", "/none"):
            _, headers, body = ALICE.ask(target)
            policy = headers["Content-Security-Policy"]
            for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"):
                self.assertIn(rule, policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
            self.assertIsNone(headers["Set-Cookie"])
            links = set(re.findall(r"\w+://[^\s\"'<>`]+", body)) - {"http://www.w3.org/2000/svg"}
            self.assertEqual(links, set(), target)
        self.assertNotIn(ALICE.token, ALICE.ask("/")[2] + ALICE.ask("/main.js")[2])

    def test_an_address_of_other_machines_is_refused(self):
        for address in ("0.0.0.0:0", "192.0.2.1:0", "[::]:0", "localhost:0"):
            run = subprocess.run([TACIT, "ui", "--listen", address], cwd=HOME, capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1), run.stderr)
            self.assertIn("--listen", run.stderr)
        run = subprocess.run([TACIT, "ui", "--listen", "127.0.0.1:0"], cwd=ALICE.home, capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--folder", run.stderr)
        self.assertIn("another `tacit ui`", run.stderr)

    def test_a_large_file_is_streamed_and_stays_private(self):
        size, piece = 64 << 20, b"mail,x\n" + b"a@example.com,1\n" * 4095
        chunks = size // len(piece)
        connection = http.client.HTTPConnection("127.0.0.1", ALICE.port, timeout=PATIENCE)
        connection.request("POST", "/api/upload?name=..%2Flarge%20one.csv", (piece for _ in range(chunks)), {
            "X-Tacit-Token": ALICE.token, "Origin": ALICE.address.rstrip("/"), "Content-Type": "application/octet-stream",
            "Content-Length": str(chunks * len(piece)),
        })
        said = json.loads(connection.getresponse().read())
        connection.close()
        file = Path(said["file"])
        self.assertEqual((file.name, file.parent, file.stat().st_size),
                         ("large_one.csv", ALICE.home / "tacit-ui/files", chunks * len(piece)))
        # The command held no more than a piece of it at a time.
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{ALICE.process.pid}/status").read_text())
        self.assertLess(int(peak[1]), 48 << 10)
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (ALICE.home / "tacit-ui").rglob("*")}
        self.assertEqual({oct(mode) for path, mode in modes.items() if path.is_dir()}, {"0o700"})
        self.assertEqual({oct(mode) for path, mode in modes.items() if mode & 0o077}, set())
        file.unlink()

    def test_slow_and_broken_clients_hold_nobody_up(self):
        silent = [socket.create_connection(("127.0.0.1", ALICE.port)) for _ in range(100)]
        begin = time.monotonic()
        self.assertEqual(ALICE.ask("/")[0], 200)
        self.assertLess(time.monotonic() - begin, 2)
        for one in silent:
            one.close()
        code, _, said = ALICE.ask("/api/start", "POST", b"x" * (300 << 10))
        self.assertEqual(code, 413, said)
        self.assertEqual(ALICE.ask("/api/start", "POST", b"{")[0], 400)

    def test_both_languages_have_the_same_texts(self):
        english, german = (json.loads((WORDS / f"{name}.json").read_text()) for name in ("en", "de"))
        self.assertEqual(list(english), list(german))
        values = lambda text: sorted(re.findall(r"\{(\w+)\}", text))
        for key, text in english.items():
            self.assertEqual(values(text), values(german[key]), key)
            self.assertTrue(text and german[key], key)
        # Every text that the page names is there, and every one that is there is named.
        sources = "".join(path.read_text() for path in WORDS.parent.glob("*.[jh]*"))
        named = set(re.findall(r"""data-t(?:-label)?="([\w.]+)\"""", sources)) | set(re.findall(r"""\bt\("([\w.]+)\"""", sources))
        self.assertEqual(named - set(english), set())
        prefixes = tuple(re.findall(r"\bt\(`([\w.]+\.)\$", sources)) + tuple(re.findall(r"`(phase\.|kind\.)\$", sources))
        unused = {key for key in english if key.removesuffix(".one") not in named and not key.startswith(prefixes)
                  and f'"{key}"' not in sources and not re.fullmatch(r"\w+\.step", key)}
        self.assertEqual(unused, set())


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Together(unittest.TestCase):
    """Both pages, in the order in which two people use them."""

    def both(self):
        return zip(TABS, (ALICE, BOB), ("alice", "bob"))

    def test_1_each_reads_its_file(self):
        self.__class__.joined = tables()
        self.__class__.port = free_port()
        for tab, page, name in self.both():
            tab.look()
            tab.go(page)
            # The token goes from the address into the page's own storage.
            self.assertEqual(tab.run("location.hash"), "")
            tab.read(HOME / "missing.csv")
            tab.waits("#file-fault", "missing.csv")
            tab.read(HOME / f"{name}.csv")
            self.assertFalse(tab.sees("#file-fault"))
        self.assertIn("Xxxx9@xxxxxxx.xxx", TABS[0].text("#columns-table"))
        self.assertNotIn("user", TABS[1].text("#columns-table"))
        self.assertIn(seen(), TABS[1].text("#columns-table"))
        TABS[0].click("#check-key")
        TABS[0].waits("#key-about", "Distinct keys: 300")
        # How the file is read holds for every command; a suggested key is of the columns that are then there.
        shown = lambda: TABS[1].run("document.querySelector('#file .command code').textContent")
        for is_set in (True, False):
            TABS[1].run("document.querySelector('#no-header').click()")
            until(lambda: ("--no-header" in shown()) == is_set, "the file is not read again")
            until(lambda: (seen() in TABS[1].text("#columns-table")) != is_set, "the first line is not what was said")
        self.assertIn("tacit check --input=", TABS[0].run("document.querySelector('#file .command code').textContent"))

    def test_2_one_invites_and_the_other_joins(self):
        alice, bob = TABS
        place = f"127.0.0.1:{self.port}"
        alice.turn("partner")
        alice.fill(invite_name="bob", invite_own="Alice & Co", invite_address=place)
        alice.click("#invite-form [type=submit]")
        alice.waits("#code", str(self.port))
        code = alice.text("#code")
        bob.turn("partner")
        bob.fill(join_code="1-wrong-words", join_name="alice", join_own=HOSTILE, join_address=place)
        bob.click("#join-form [type=submit]")
        bob.waits("#join-fault", "is not a word that codes use")
        # A tab that is closed ends nothing, and one that is opened again finds what goes on.
        alice.reopen()
        alice.go(ALICE, "partner")
        alice.waits("#code", code)
        bob.fill(join_code=code)
        bob.click("#join-form [type=submit]")
        bob.waits("#join-status", "is known now")
        alice.waits("#invite-status", "is known now")
        self.assertTrue(alice.run("document.querySelector('#partners input').checked"))
        self.assertIn("<img src=x", alice.text("#partners"))
        fingerprints = [re.search(r"fingerprint ([\w-]+)", tab.text("#partners"))[1] for tab in TABS]
        own = [re.search(r"fingerprint: ([\w-]+)", tab.text("#own-key"))[1] for tab in TABS]
        self.assertEqual(fingerprints, own[::-1])

    def test_3_a_wrong_code_of_right_words_ends_both(self):
        alice, bob = TABS
        port = free_port()
        alice.fill(invite_name="other", invite_address=f"127.0.0.1:{port}")
        alice.click("#invite-form [type=submit]")
        alice.waits("#code", str(port))
        code = alice.text("#code").split("-")
        bob.fill(join_code="-".join([code[0], code[2], code[1]]), join_name="other", join_address=f"127.0.0.1:{port}")
        bob.click("#join-form [type=submit]")
        until(lambda: bob.sees("#join-fault") and alice.sees("#invite-fault"), "a wrong code is not said")
        self.assertNotIn("other", [one["name"] for one in ALICE.get("/api/state")["partners"]])

    def test_4_they_agree_and_see_what_each_learns(self):
        alice, bob = TABS
        for tab in TABS:
            tab.turn("ask")
        alice.click("#asks input[value=rows]")
        alice.click("#results input[value=peer]")
        proposal = alice.run("document.querySelector('#proposed').value")
        bob.run("document.querySelector('#accept').open = true")
        bob.fill(proposal="tacit-proposal-1:" + "A" * 40)
        bob.click("#take")
        bob.waits("#accept-fault", "is not a proposal")
        bob.fill(proposal=proposal)
        bob.click("#take")
        bob.waits("#accept-status", "email")
        self.assertTrue(bob.run("document.querySelector('#results input[value=me]').checked"))
        alice.shot("ui-ask", 1100)
        for tab in TABS:
            tab.turn("run")
            tab.waits("#terms-own", "distinct keys")
        self.assertIn("that you have 300 distinct keys, and which of its own keys are among them", alice.text("#terms-other"))
        self.assertIn("that the peer has 300 distinct keys; nothing else", alice.text("#terms-own"))
        self.assertIn("that you have 250 distinct keys; nothing else", bob.text("#terms-other"))
        shown = alice.run("document.querySelector('#terms-command code').textContent")
        self.assertRegex(shown, r"^tacit psi --listen=127.0.0.1:\d+ --identity=.* --reveal=rows --result=peer")
        self.assertEqual(len(ALICE.tasks("run")), 0)
        bob.shot("ui-terms")

    def test_5_they_run_and_the_result_is_the_plain_join(self):
        alice, bob = TABS
        alice.click("#start")
        alice.waits("#phase", "Waiting for your partner")
        # The page is closed and opened again while its run waits.
        alice.reopen()
        alice.go(ALICE)
        alice.waits("#phase", "Waiting for your partner")
        bob.click("#start")
        bob.waits("#headline", "100 keys in common")
        alice.waits("#headline", "The partner has the answer")
        bob.waits("#rows-table", seen())
        for tab in TABS:
            self.assertIsNone(tab.run("window.hacked"))
            self.assertEqual(tab.run("document.querySelectorAll('main img, main script').length"), 0)
        run = BOB.tasks("run")[0]
        with open(Path(run["folder"]) / "result.csv", newline="") as file:
            found = list(csv.DictReader(file))
        self.assertEqual(found, [{name: str(value) for name, value in row.items()} for row in self.joined])
        self.assertFalse(alice.sees("#save"))
        link = BOB.post("/api/ticket", {"id": run["id"], "name": "result.csv"})[1]["link"]
        code, headers, body = BOB.ask(link, X_Tacit_Token=None)
        self.assertEqual((code, headers["Content-Disposition"]), (200, 'attachment; filename="result.csv"'))
        self.assertEqual(body.encode(), (Path(run["folder"]) / "result.csv").read_bytes())
        self.assertEqual(BOB.ask(link, X_Tacit_Token=None)[0], 404, "a link is good once")
        link = BOB.post("/api/ticket", {"id": run["id"], "name": "report.html"})[1]["link"]
        code, headers, body = BOB.ask(link)
        self.assertIn("sandbox", headers["Content-Security-Policy"])
        self.assertNotIn("script", headers["Content-Security-Policy"])
        self.assertIn("private set intersection", body)
        # A person saves the result, and opens the report in a tab of its own.
        bob.say("Page.setDownloadBehavior", behavior="allow", downloadPath=str(HOME))
        bob.click("#save")
        until(lambda: (HOME / "result.csv").exists(), "nothing is saved")
        until(lambda: (HOME / "result.csv").read_bytes() == (Path(run["folder"]) / "result.csv").read_bytes(), "not all is saved")
        bob.click("#report")
        until(lambda: any("Report of a private set" in one["title"] for one in bob.others()), f"no report: {bob.others()}")
        bob.close_others()
        bob.run("document.querySelector('#running').scrollIntoView()")
        bob.shot("ui-result", 1000)
        self.assertEqual([tab.faults() for tab in TABS], [[], []])

    def test_6_settings_that_differ_are_said_on_both_pages(self):
        alice, bob = TABS
        for tab, ask in zip(TABS, ("rows", "count")):
            tab.turn("ask")
            tab.click(f"#asks input[value={ask}]")
            tab.click("#results input[value=both]")
            tab.turn("run")
        for tab in TABS:
            tab.click("#start")
        for tab in TABS:
            tab.waits("#run-fault", "--reveal")
            self.assertIn("Failed", tab.text("#running-title"))

    def test_7_numbers_and_questions(self):
        alice, bob = TABS
        alice.turn("ask")
        alice.click("#asks input[value=own]")
        alice.fill(statistic="sum", own_column="amount", security="semi-honest")
        proposal = alice.run("document.querySelector('#proposed').value")
        bob.turn("ask")
        bob.fill(proposal=proposal)
        bob.click("#take")
        self.together("#headline", "The partner has the answer", f"Sum of amount: {sum(range(200, 300)):,}")
        alice.turn("ask")
        alice.click("#asks input[value=question]")
        alice.click("#results input[value=peer]")
        alice.fill(sql_theirKey="Mail", sql_sum="amount", sql_sumOf="me", sql_group="city", sql_groupOf="me", sql_values="Bonn, Köln")
        alice.click("#sql-make")
        self.assertIn('GROUP BY a."city"', alice.run("document.querySelector('#sql').value"))
        bob.turn("ask")
        bob.fill(proposal=alice.run("document.querySelector('#proposed').value"))
        bob.click("#take")
        self.together("#headline", "The partner has the answer", "The answer has 2 rows")
        run = BOB.tasks("run")[0]
        answer = (Path(run["folder"]) / "result.csv").read_text().splitlines()
        self.assertEqual(sorted(answer[1:]), [f"Bonn,50,{sum(range(200, 300, 2))}", f"Köln,50,{sum(range(201, 300, 2))}"])

    def together(self, selector, *texts):
        for tab in TABS:
            tab.turn("run")
            tab.click("#start")
        for tab, text in zip(TABS, texts):
            tab.waits(selector, text)

    def test_8_a_run_is_cancelled(self):
        alice, _ = TABS
        alice.click("#start")
        alice.waits("#phase", "Waiting for your partner")
        task = ALICE.tasks("run")[0]
        pid = self.child(ALICE)
        alice.click("#cancel")
        alice.waits("#running-title", "Cancelled")
        self.assertFalse(Path(f"/proc/{pid}").exists())
        self.assertEqual(ALICE.get(f"/api/task?id={task['id']}")["code"], 130)
        self.assertFalse((Path(task["folder"]) / "result.csv").exists())

    def child(self, page):
        """The command that a page runs at the moment."""
        processes = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return next(int(entry.name) for entry in processes if self.parent(entry) == page.process.pid)

    def parent(self, entry):
        try:
            return int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return None

    def test_9_the_history_outlives_the_page(self):
        alice, bob = TABS
        bob.turn("history")
        bob.waits("#history-table", "100")
        rows = len(BOB.tasks("run"))
        until(lambda: bob.run("document.querySelector('#history-table').tBodies[0].rows.length") == rows, "runs are missing")
        self.assertEqual(BOB.end(), 0)
        BOB.start()
        bob.go(BOB, "history")
        bob.waits("#history-table", "100")
        self.assertEqual(bob.run("document.querySelector('#history-table').tBodies[0].rows.length"), rows)
        self.assertIn("Failed", bob.text("#history-table"))
        bob.run("[...document.querySelectorAll('#history-table button')].at(-1).click()")
        bob.waits("#headline", "100 keys in common")
        bob.waits("#rows-table", seen())


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Service(unittest.TestCase):
    """One page serves by a policy, the other asks."""

    def test_a_service_is_asked_and_leaves_records(self):
        alice, bob = TABS
        own = ALICE.home / "tacit-ui"
        (HOME / "rules.toml").write_text(f"""
version = 1
listen = "127.0.0.1:{free_port()}"
identity = "{own}/keys/tacit.key"
state = "{HOME}/state"
[peers.bob]
key = "{own}/partners/bob.pub"
[sources.customers]
input = "{HOME}/alice.csv"
key = ["email:email"]
rows_in_total = 1000
[jobs.shared]
source = "customers"
allow = ["bob"]
reveal = ["rows"]
result = ["peer"]
max_peer_keys = 1000
runs_a_day = 3
purpose = "customers of both"
""")
        listen = re.search(r'listen = "(.*)"', (HOME / "rules.toml").read_text())[1]
        # Without a file of her own Alice has the page write one, and changes what it says about the address.
        alice.go(ALICE, "service")
        alice.click("#write-policy")
        written = alice.run("document.querySelector('#policy-text').value")
        self.assertIn('key = ["email:email"]', written)
        alice.fill(policy_text=written.replace("runs_a_day = 1", "runs_a_day = -1"))
        alice.click("#serve-check")
        alice.waits("#service-fault", "runs_a_day")
        alice.fill(policy_text=written)
        alice.click("#serve-check")
        alice.waits("#service-status", "no problems")
        self.assertEqual(stat.S_IMODE((own / "policy.toml").stat().st_mode), 0o600)
        alice.fill(policy=str(HOME / "rules.toml"))
        alice.click("#serve-check")
        alice.waits("#service-told", "customers of both")
        self.assertIn("shared", alice.text("#service-told"))
        alice.click("#serve")
        until(lambda: alice.sees("#services a"), "no service")
        board = alice.run("document.querySelector('#services a').href")
        self.assertRegex(board, r"^http://127\.0\.0\.1:\d+/$")
        # Bob's page is at another address since it was started again, so it begins anew.
        bob.go(BOB)
        bob.read(HOME / "bob.csv")
        bob.turn("partner")
        bob.click("#partners input[value=alice]")
        bob.fill(way="connect", address=listen)
        bob.turn("service")
        bob.click("#jobs")
        bob.waits("#jobs-told", "shared")
        bob.click("#jobs-told input")
        bob.waits("#offer-told", "300")
        bob.click("#accept-offer")
        bob.waits("#headline", "100 keys in common")
        bob.waits("#rows-table", "n210")
        bob.turn("history")
        bob.waits("#history-table", "Request: shared")
        bob.click("#verify")
        bob.waits("#verify-status", "The chain is whole: 1 record, 1 signed by both sides")
        record = BOB.home / "tacit-ui/records/records.jsonl"
        record.write_text(record.read_text().replace('"shared"', '"stored"'))
        bob.click("#verify")
        bob.waits("#verify-fault", "record")
        alice.click("#services button")
        until(lambda: not alice.sees("#services a"), "the service does not end")
        self.assertEqual(ALICE.tasks("serve")[0]["code"], 0)


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Looks(unittest.TestCase):
    def setUp(self):
        self.tab = TABS[0]
        self.tab.look()
        self.tab.go(ALICE)

    def tearDown(self):
        self.tab.look()
        self.tab.fill(language="en")

    def test_every_step_fits_in_both_languages_light_and_dark(self):
        for language, word in (("de", "Ihr Partner"), ("en", "Your partner")):
            self.tab.fill(language=language)
            self.tab.waits("nav", word)
            self.assertEqual(self.tab.run("document.documentElement.lang"), language)
            for step in STEPS:
                self.tab.look()
                self.tab.turn(step)
                for width, dark in ((1200, False), (400, True), (400, False)):
                    with self.subTest(language=language, step=step, width=width, dark=dark):
                        self.tab.look(width, 900, dark)
                        self.tab.run("document.querySelectorAll('details').forEach(e => e.open = true)")
                        self.assertLessEqual(self.tab.run("document.scrollingElement.scrollWidth"), width)
                        # A text that has no key shows the key.
                        self.assertNotRegex(self.tab.text("main"), r"\b(file|partner|ask|run|terms|history|service|sql|way)\.\w+\b(?!\w*\.csv)")
                        worst = self.tab.run(CONTRAST)
                        self.assertGreaterEqual(worst[0], 4.5, worst)
                        if PICTURES:
                            self.tab.picture(PICTURES / f"ui-{step}-{language}-{width}-{'dark' if dark else 'light'}.png")

    def test_the_language_is_the_browser_s_until_one_is_chosen(self):
        agent = self.tab.run("navigator.userAgent")
        self.tab.run("localStorage.removeItem('tacit-language')")
        for accepted, language in (("de-AT,en", "de"), ("fr,de", "de"), ("fr", "en")):
            self.tab.say("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=accepted)
            self.tab.go(ALICE)
            self.assertEqual(self.tab.run("document.documentElement.lang"), language, accepted)
        self.tab.fill(language="de")
        until(lambda: self.tab.run("document.documentElement.lang") == "de", "no German")
        self.tab.go(ALICE)
        self.assertEqual(self.tab.run("document.documentElement.lang"), "de")
        self.tab.say("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="en")

    def test_the_keyboard_reaches_everything_and_all_has_a_name(self):
        for step in STEPS:
            self.tab.turn(step)
            self.tab.run("document.querySelectorAll('details').forEach(e => e.open = true)")
            pressable = "a[href], button:enabled, input:enabled, select:enabled, textarea, summary, [tabindex=\"0\"]"
            wanted = self.tab.run(f"""[...document.querySelectorAll('{pressable}')].filter(e => e.checkVisibility()
                && !(e.type === 'radio' && !e.checked)).map((e, i) => (e.dataset.at = i, String(i)))""")
            self.tab.run("document.activeElement.blur(); document.querySelector('.skip').focus()")
            reached = [self.tab.run("document.activeElement.dataset.at")]
            for _ in wanted[1:]:
                self.tab.press("Tab")
                at, ring = self.tab.run("(e => [e.dataset.at, getComputedStyle(e).outlineStyle])(document.activeElement)")
                reached.append(at)
                self.assertNotEqual(ring, "none", f"the focus on {at} of {step} is not seen")
            missing = set(wanted) - set(reached)
            self.assertEqual(missing, set(), self.tab.run(f"""[...document.querySelectorAll('[data-at]')]
                .filter(e => {json.dumps(sorted(missing))}.includes(e.dataset.at)).map(e => e.outerHTML.slice(0, 90))"""))
            self.tab.run("document.querySelectorAll('[data-at]').forEach(e => delete e.dataset.at)")
            tree = self.tab.say("Accessibility.getFullAXTree")["nodes"]
            for node in tree:
                role = node.get("role", {}).get("value")
                if not node.get("ignored") and role in ("button", "combobox", "link", "textbox", "radio", "checkbox", "table", "progressbar"):
                    self.assertTrue(node.get("name", {}).get("value"), (step, node))
            heads = self.tab.run("[...document.querySelectorAll('h1, h2, h3')].filter(e => e.checkVisibility()).map(e => Number(e.tagName[1]))")
            self.assertTrue(heads[0] == 1 and all(b <= a + 1 for a, b in zip(heads, heads[1:])), heads)
        # A step is opened, and a choice made, without a pointer.
        self.tab.run("document.querySelector('nav a[href=\"#ask\"]').focus()")
        self.tab.press("Enter", text="\r")
        until(lambda: self.tab.run("document.activeElement.id") == "ask-title", "the step's title has no focus")
        self.assertEqual(self.tab.run("document.querySelector('#phase').getAttribute('aria-live')"), "polite")

    def test_the_first_paint_is_soon_and_nothing_moves(self):
        self.tab.go(ALICE)
        moved = self.tab.run("""new Promise(told => {
            new PerformanceObserver(list => told(list.getEntries().reduce((all, one) => all + one.value, 0)))
                .observe({ type: 'layout-shift', buffered: true });
            setTimeout(() => told(0), 500); })""")
        self.assertLess(moved, 0.02)

    def test_a_dropped_file_is_read(self):
        (HOME / "dropped.csv").write_text("phone;id\n" + "".join(f"+4922812345{i:02};{i}\n" for i in range(60)))
        document = self.tab.say("DOM.getDocument")["root"]["nodeId"]
        pick = self.tab.say("DOM.querySelector", nodeId=document, selector="#pick")["nodeId"]
        self.tab.turn("file")
        self.tab.say("DOM.setFileInputFiles", nodeId=pick, files=[str(HOME / "dropped.csv")])
        self.tab.waits("#columns-about", "Rows: 60")
        self.assertIn("tacit-ui/files/dropped.csv", self.tab.run("document.querySelector('#path').value"))
        self.assertIn("phone", self.tab.text("#columns-table"))

    def test_a_policy_is_checked(self):
        self.tab.turn("service")
        (HOME / "policy.toml").write_text("version = 1\nlisten = 7\n")
        self.tab.fill(policy=str(HOME / "policy.toml"))
        self.tab.click("#serve-check")
        self.tab.waits("#service-fault", "problems")
        self.assertIn("listen", self.tab.text("#service-told"))


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Strangers(unittest.TestCase):
    def test_a_hostile_page_reads_and_starts_nothing(self):
        tab = TABS[0]
        before = len(ALICE.get("/api/state")["tasks"])
        hostile = free_port()
        page = "<!doctype html><title>evil</title>"
        server = subprocess.Popen([sys.executable, "-c", f"""
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Type', 'text/html'); self.end_headers(); self.wfile.write({page.encode()!r})
    def log_message(self, *words): pass
http.server.HTTPServer.handle_error = lambda *words: None
http.server.HTTPServer(('127.0.0.1', {hostile}), Page).serve_forever()"""])
        try:
            def reachable():
                try:
                    http.client.HTTPConnection("127.0.0.1", hostile, timeout=1).request("GET", "/")
                    return True
                except OSError:
                    return False
            until(reachable, "no hostile page")
            # Another port of this machine is the same site, so it is the nearest that a stranger can come.
            for host in ("127.0.0.1", "evil.example"):
                tab.open(f"http://{host}:{hostile}/", "document.title === 'evil'", "no hostile page")
                for target in (ALICE.address, f"http://evil.example:{ALICE.port}/"):
                    seen = tab.run(f"""(async () => {{
                        const body = JSON.stringify({{ kind: 'check', file: '/etc/hostname' }}), found = [];
                        for (const [path, more] of [['api/state', {{}}], ['api/start', {{ method: 'POST', body }}],
                            ['api/start', {{ method: 'POST', body, headers: {{ 'X-Tacit-Token': '{ALICE.token}', 'Content-Type': 'application/json' }} }}],
                            ['api/state', {{ headers: {{ 'X-Tacit-Token': '{ALICE.token}' }} }}], ['words/en.json', {{}}]])
                            found.push(await fetch('{target}' + path, more).then(a => a.text(), () => 'refused'));
                        await fetch('{target}api/start', {{ method: 'POST', body, mode: 'no-cors' }}).catch(() => 0);
                        return found; }})()""")
                    self.assertEqual(seen, ["refused"] * 5, (host, target))
                # Nor can it show the page in a frame.
                framed = tab.run(f"""new Promise(done => {{ const frame = document.createElement('iframe');
                    frame.src = '{ALICE.address}'; frame.onload = () => {{ try {{ done(String(frame.contentDocument)); }} catch {{ done('closed'); }} }};
                    document.body.append(frame); }})""")
                self.assertIn(framed, ("null", "closed"))
            # A name of elsewhere that leads here (DNS rebinding) is refused as well.
            tab.say("Page.navigate", url=f"http://evil.example:{ALICE.port}/#{ALICE.token}")
            until(lambda: tab.run("document.readyState === 'complete' && location.host.startsWith('evil')"), "no page")
            self.assertIn("only for this machine", tab.run("document.body.innerText"))
        finally:
            server.kill()
            server.wait()
        self.assertEqual(len(ALICE.get("/api/state")["tasks"]), before)

    def test_a_page_with_a_wrong_token_says_so(self):
        tab = TABS[0]
        tab.open(f"{ALICE.address}#{'0' * 32}", "!document.body.classList.contains('new')", "no page")
        tab.waits("#lost", "no valid token")
        tab.go(ALICE)
        self.assertFalse(tab.sees("#lost"))


class TheEnd(unittest.TestCase):
    """Runs last: the pages go, with what they started."""

    def test_the_end_of_the_command_ends_what_it_started(self):
        port = free_port()
        ALICE.post("/api/start", {"kind": "invite", "name": "late", "way": "listen", "address": f"127.0.0.1:{port}"})
        until(lambda: ALICE.tasks("invite")[0]["status"] == "running", "no invitation")
        time.sleep(0.3)
        self.assertEqual(ALICE.end(), 0)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_the_page_says_that_its_command_is_gone(self):
        TABS[0].waits("#lost", "does not answer")


def main():
    global PICTURES, HOME, ALICE, BOB
    if not TACIT.exists():
        sys.exit(f"{TACIT} is not there: cargo build makes it")
    if "--picture" in sys.argv:
        at = sys.argv.index("--picture")
        PICTURES = Path(sys.argv[at + 1])
        PICTURES.mkdir(parents=True, exist_ok=True)
        del sys.argv[at : at + 2]
    if not CHROMIUM:
        print("skipped: no Chromium here (apt-get install chromium), so the pages are not looked at")
    folder = tempfile.TemporaryDirectory()
    HOME = Path(folder.name).resolve()
    pages = []
    try:
        pages = [Page(HOME, name) for name in ("alice", "bob")]
        ALICE, BOB = pages
        TABS.extend(Tab() for _ in range(2 if CHROMIUM else 0))
        suite = unittest.TestSuite(
            unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in (Asking, Together, Service, Looks, Strangers, TheEnd)
        )
        result = unittest.TextTestRunner(verbosity=0, failfast="--failfast" in sys.argv).run(suite)
    finally:
        for tab in TABS:
            tab.end()
        for page in pages:
            if page.process.poll() is None:
                page.end()
        folder.cleanup()
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - len(result.skipped) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
