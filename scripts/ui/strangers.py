"""Pages of others, wrong tokens, and the end of the command."""

import http.client
import socket
import subprocess
import sys
import time
import unittest

from chromium import CHROMIUM, free_port, until

from .pages import here


@unittest.skipUnless(CHROMIUM, "no Chromium")
class Strangers(unittest.TestCase):
    def test_a_hostile_page_reads_and_starts_nothing(self):
        tab = here.tabs[0]
        before = len(here.alice.get("/api/state")["tasks"])
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
                for target in (here.alice.address, f"http://evil.example:{here.alice.port}/"):
                    seen = tab.run(f"""(async () => {{
                        const body = JSON.stringify({{ kind: 'check', file: '/etc/hostname' }}), found = [];
                        for (const [path, more] of [['api/state', {{}}], ['api/start', {{ method: 'POST', body }}],
                            ['api/start', {{ method: 'POST', body, headers: {{ 'X-Tacit-Token': '{here.alice.token}', 'Content-Type': 'application/json' }} }}],
                            ['api/state', {{ headers: {{ 'X-Tacit-Token': '{here.alice.token}' }} }}], ['words/en.json', {{}}]])
                            found.push(await fetch('{target}' + path, more).then(a => a.text(), () => 'refused'));
                        await fetch('{target}api/start', {{ method: 'POST', body, mode: 'no-cors' }}).catch(() => 0);
                        return found; }})()""")
                    self.assertEqual(seen, ["refused"] * 5, (host, target))
                # Nor can it show the page in a frame.
                framed = tab.run(f"""new Promise(done => {{ const frame = document.createElement('iframe');
                    frame.src = '{here.alice.address}'; frame.onload = () => {{ try {{ done(String(frame.contentDocument)); }} catch {{ done('closed'); }} }};
                    document.body.append(frame); }})""")
                self.assertIn(framed, ("null", "closed"))
            # A name of elsewhere that leads here (DNS rebinding) is refused as well.
            tab.say("Page.navigate", url=f"http://evil.example:{here.alice.port}/#{here.alice.token}")
            until(lambda: tab.run("document.readyState === 'complete' && location.host.startsWith('evil')"), "no page")
            self.assertIn("only for this machine", tab.run("document.body.innerText"))
        finally:
            server.kill()
            server.wait()
        self.assertEqual(len(here.alice.get("/api/state")["tasks"]), before)

    def test_a_page_with_a_wrong_token_says_so(self):
        tab = here.tabs[0]
        tab.open(f"{here.alice.address}#{'0' * 32}", "!document.body.classList.contains('new')", "no page")
        tab.waits("#lost", "no valid token")
        tab.go(here.alice)
        self.assertFalse(tab.sees("#lost"))


class TheEnd(unittest.TestCase):
    """Runs last: the pages go, with what they started."""

    def test_the_end_of_the_command_ends_what_it_started(self):
        port = free_port()
        here.alice.post("/api/start", {"kind": "invite", "name": "late", "way": "listen", "address": f"127.0.0.1:{port}"})
        until(lambda: here.alice.tasks("invite")[0]["status"] == "running", "no invitation")
        time.sleep(0.3)
        self.assertEqual(here.alice.end(), 0)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_the_page_says_that_its_command_is_gone(self):
        here.tabs[0].waits("#lost", "does not answer")
