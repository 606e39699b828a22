"""The two commands that serve a page each, the browsers that open them, and what a person does there."""

import csv
import http.client
import json
import os
import re
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

from chromium import PATIENCE, Browser, until

ROOT = Path(__file__).resolve().parent.parent.parent
TACIT = Path(os.environ.get("TACIT", ROOT / "target/debug/tacit"))
WORDS = ROOT / "crates/tacit-ui/src/page/words"
READY = "!document.body.classList.contains('new') && document.querySelector('#where').textContent !== ''"
# Cells and names that would run if they became markup.
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
# What all tests have in common: the folder of the files, both commands, a browser for each, and where pictures go.
here = SimpleNamespace(home=None, alice=None, bob=None, tabs=[], pictures=None)


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

    def speak(self, language):
        self.fill(language=language)
        until(lambda: self.run("document.documentElement.lang") == language, f"the page does not speak {language}")

    def language_of(self, selector):
        """The language that a screen reader takes for an element's text."""
        return self.run(f"document.querySelector({json.dumps(selector)}).closest('[lang]').lang")

    def fits(self, width=400):
        """Whether nothing is wider than a narrow screen."""
        self.look(width, 900)
        is_so = self.run("document.scrollingElement.scrollWidth") <= width
        self.look()
        return is_so

    def shot(self, name, height=900):
        """A picture for the book, with a home as people have it."""
        if not here.pictures:
            return
        self.look(1200, height)
        self.run(f"""(() => {{ const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll({json.dumps(str(here.home))}, '/home');
            document.activeElement.blur(); }})()""")
        self.picture(here.pictures / f"{name}.png", whole=False)
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


def seen():
    """What the page shows of the hostile cells, as text."""
    return "points" if here.pictures else "<img src=x"


def tables():
    """Two files with hostile names and cells, and the rows of the second whose key is in the first."""
    note, points = (HOSTILE, HOSTILE) if not here.pictures else ("n200", "points")
    alice = [{"email": f"User{i}@example.com", "amount": i, "city": ["Bonn", "Köln"][i % 2], "price": f"{i}.25"} for i in range(300)]
    bob = [{"Mail": f"user{i}@example.com ", "note": note if i == 200 else f"n{i}", points: i} for i in range(200, 450)]
    for name, rows in (("alice", alice), ("bob", bob)):
        with open(here.home / f"{name}.csv", "w", newline="") as file:
            out = csv.DictWriter(file, rows[0].keys())
            out.writeheader()
            out.writerows(rows)
    keys = {row["email"].lower() for row in alice}
    return [row for row in bob if row["Mail"].strip().lower() in keys]
