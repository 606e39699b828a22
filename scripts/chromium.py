"""Headless Chromium for tests of pages, driven through its pipe; nothing else is needed for that."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 20


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(is_so, complaint):
    start = time.monotonic()
    while not is_so():
        if time.monotonic() - start > PATIENCE:
            raise AssertionError(complaint)
        time.sleep(0.05)


class Browser:
    """Headless Chromium with one page, spoken to through its pipe."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        words += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        words += ["--host-resolver-rules=MAP evil.example 127.0.0.1"]
        words += ["--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"]
        # It reads its file 3 and writes its file 4. Numbers of more than a digit, or 3 and 4 the other way round, are
        # beyond a shell.
        begin = "import fcntl, os, sys; a, b = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]); " \
            "os.dup2(a, 3); os.dup2(b, 4); os.execv(sys.argv[3], sys.argv[3:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", begin, str(theirs_in), str(theirs_out), CHROMIUM, *words],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.out, self.inn = ours_out, ours_in
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        self.target = None
        self.reopen()

    def reopen(self):
        """Closes the page, if there is one, and opens another, as a person closes a tab."""
        old, self.session = self.target, None
        self.target = self.say("Target.createTarget", url="about:blank")["targetId"]
        if old:
            self.say("Target.closeTarget", targetId=old)
        self.session = self.say("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.say(f"{domain}.enable")

    def others(self):
        """Pages that this one has opened."""
        session, self.session = self.session, None
        try:
            targets = self.say("Target.getTargets")["targetInfos"]
        finally:
            self.session = session
        return [one for one in targets if one["type"] == "page" and one["targetId"] != self.target and one["url"] != "about:blank"]

    def close_others(self):
        for one in self.others():
            session, self.session = self.session, None
            self.say("Target.closeTarget", targetId=one["targetId"])
            self.session = session

    def say(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                piece = os.read(self.inn, 1 << 16)
                if not piece:
                    raise AssertionError("the browser is gone")
                self.rest += piece
            text, _, self.rest = self.rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.say("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def look(self, width=1200, height=900, dark=False):
        self.say("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.say("Emulation.setEmulatedMedia", features=features)

    def open(self, address, ready, complaint):
        """Goes to `address`, and waits until the expression `ready` is true there."""
        self.events.clear()
        self.say("Page.navigate", url=address)
        until(lambda: self.run(f"document.readyState === 'complete' && {ready}"), complaint)

    def press(self, key, code=None, text=None, shift=False):
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40, "Home": 36, "End": 35}
        params = {"key": key, "code": code or key, "windowsVirtualKeyCode": codes[key], "modifiers": 8 if shift else 0}
        if text:
            params["text"] = text
        self.say("Input.dispatchKeyEvent", type="keyDown", **params)
        self.say("Input.dispatchKeyEvent", type="keyUp", **params)

    def picture(self, path, whole=True):
        answer = self.say("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        os.close(self.out)
        os.close(self.inn)
        self.folder.cleanup()


# The worst contrast between a text and what is behind it, with the text.
CONTRAST = """(() => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = e => { for (; e; e = e.parentElement) {
        const colour = parse(getComputedStyle(e).backgroundColor);
        if (colour.length < 4 || colour[3] > 0) return colour; } return [255, 255, 255]; };
    let worst = [99, ''];
    for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length) continue;
        if (e.matches('script, noscript, option')) continue;
        const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 100)];
    }
    return worst; })()"""
