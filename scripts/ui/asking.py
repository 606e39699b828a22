"""Plain HTTP requests to the page: which of them it answers, and the sentences that it shows."""

import http.client
import json
import re
import socket
import stat
import subprocess
import time
import unittest
from pathlib import Path

from chromium import PATIENCE, free_port, until

from .pages import ROOT, TACIT, WORDS, here


class Asking(unittest.TestCase):
    """Requests that the page answers or refuses."""

    def test_a_wrong_token_host_or_origin_is_refused(self):
        for token in (None, "", "0" * 32, here.alice.token[:-1], here.alice.token + "0", here.alice.token.upper()):
            code, _, said = here.alice.ask("/api/state", X_Tacit_Token=token)
            self.assertEqual((code, "partners" in said), (403, False), token)
        self.assertEqual(here.alice.ask("/api/state")[0], 200)
        port = here.alice.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
            self.assertEqual(here.alice.ask("/", Host=host)[0], 200, host)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}"):
            for target in ("/", "/main.js", "/api/state"):
                self.assertEqual(here.alice.ask(target, Host=host)[0], 421, host)
        before = len(here.alice.get("/api/state")["tasks"])
        form = {"kind": "check", "file": "/etc/hostname"}
        own = f"http://127.0.0.1:{port}"
        wrong = [{"Origin": origin} for origin in (None, "null", "", "http://evil.example", f"https://127.0.0.1:{port}", own + "0")]
        wrong += [{"Sec_Fetch_Site": site} for site in ("cross-site", "same-site", "none")]
        for headers in wrong:
            for target in ("/api/start", "/api/cancel", "/api/ticket", "/api/delete", "/api/upload?name=a"):
                code, _ = here.alice.post(target, form, **headers)
                self.assertEqual(code, 403, (target, headers))
        code, _ = here.alice.post("/api/start", form, Content_Type="text/plain")
        self.assertEqual(code, 415)
        self.assertEqual(len(here.alice.get("/api/state")["tasks"]), before)

    def test_no_file_but_the_page_s_own_is_served(self):
        for target in ("/../Cargo.toml", "/keys/tacit.key", "/file/x", "/file/../keys/tacit.key", "/api/preview?id=1&name=../run.json",
                       "/api/preview?id=0&name=result.csv", "/api/none", "/words/../main.js", "//etc/passwd"):
            self.assertEqual(here.alice.ask(target)[0], 404, target)
        for name in ("../../keys/tacit.key", "run.json", "question.sql", "", None):
            self.assertEqual(here.alice.post("/api/ticket", {"id": 1, "name": name})[0], 404, name)
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            self.assertEqual(here.alice.ask("/", method)[0], 405, method)

    def test_every_answer_has_its_guards(self):
        for target in ("/", "/main.js", "/page.css", "/words/de.json", "/api/state", "/none"):
            _, headers, body = here.alice.ask(target)
            policy = headers["Content-Security-Policy"]
            for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"):
                self.assertIn(rule, policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
            self.assertIsNone(headers["Set-Cookie"])
            links = set(re.findall(r"\w+://[^\s\"'<>`]+", body)) - {"http://www.w3.org/2000/svg"}
            self.assertEqual(links, set(), target)
        self.assertNotIn(here.alice.token, here.alice.ask("/")[2] + here.alice.ask("/main.js")[2])

    def test_an_address_of_other_machines_is_refused(self):
        for address in ("0.0.0.0:0", "192.0.2.1:0", "[::]:0", "localhost:0"):
            run = subprocess.run([TACIT, "ui", "--listen", address], cwd=here.home, capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1), run.stderr)
            self.assertIn("--listen", run.stderr)
        run = subprocess.run([TACIT, "ui", "--listen", "127.0.0.1:0"], cwd=here.alice.home, capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--folder", run.stderr)
        self.assertIn("another `tacit ui`", run.stderr)

    def test_a_large_file_is_streamed_and_stays_private(self):
        size, piece = 64 << 20, b"mail,x\n" + b"a@example.com,1\n" * 4095
        chunks = size // len(piece)
        connection = http.client.HTTPConnection("127.0.0.1", here.alice.port, timeout=PATIENCE)
        connection.request("POST", "/api/upload?name=..%2Flarge%20one.csv", (piece for _ in range(chunks)), {
            "X-Tacit-Token": here.alice.token, "Origin": here.alice.address.rstrip("/"), "Content-Type": "application/octet-stream",
            "Content-Length": str(chunks * len(piece)),
        })
        said = json.loads(connection.getresponse().read())
        connection.close()
        file = Path(said["file"])
        self.assertEqual((file.name, file.parent, file.stat().st_size),
                         ("large_one.csv", here.alice.home / "tacit-ui/files", chunks * len(piece)))
        # The command held no more than a piece of it at a time.
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{here.alice.process.pid}/status").read_text())
        self.assertLess(int(peak[1]), 48 << 10)
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (here.alice.home / "tacit-ui").rglob("*")}
        self.assertEqual({oct(mode) for path, mode in modes.items() if path.is_dir()}, {"0o700"})
        self.assertEqual({oct(mode) for path, mode in modes.items() if mode & 0o077}, set())
        file.unlink()

    def test_only_a_dropped_file_is_deleted_by_the_page_itself_and_not_while_it_is_used(self):
        body = b"mail,x\n" + b"".join(b"a%d@example.com,1\n" % i for i in range(60))
        code, _, said = here.bob.ask("/api/upload?name=gone.csv", "POST", body, Content_Type="application/octet-stream")
        file = Path(json.loads(said)["file"])
        self.assertTrue(code == 200 and file.exists())
        for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"X_Tacit_Token": "0" * 32}):
            self.assertEqual(here.bob.post("/api/delete", {"name": "gone.csv"}, **headers)[0], 403, headers)
        for name in ("../keys/tacit.key", "../files/gone.csv", str(file), "none.csv", "..", "", None, 7, ["gone.csv"]):
            self.assertEqual(here.bob.post("/api/delete", {"name": name})[0], 404, name)
        self.assertEqual(here.bob.ask("/api/delete?name=gone.csv")[0], 404, "reading deletes nothing")
        self.assertTrue(file.exists())
        self.assertEqual(subprocess.run([TACIT, "keygen", "--out", here.home / "used"], capture_output=True).returncode, 0)
        form = {"kind": "run", "way": "listen", "address": f"127.0.0.1:{free_port()}", "peer_file": str(here.home / "used.pub"),
                # By another path, which is the same file.
                "file": str(file.parent / ".." / "files" / file.name),
                "ask": "rows", "key": [{"column": "mail", "type": "email"}], "result": "me"}
        self.assertEqual(here.bob.post("/api/start", {"kind": "invite", "name": "x", "way": "listen", "address": f"127.0.0.1:{free_port()}"})[0], 200)
        until(lambda: (here.bob.home / "tacit-ui/keys/tacit.key").exists(), "no key")
        task = here.bob.post("/api/start", form)[1]["id"]
        self.assertEqual(here.bob.post("/api/delete", {"name": "gone.csv"})[0], 409)
        for one in here.bob.get("/api/state")["tasks"]:
            here.bob.post("/api/cancel", {"id": one["id"]})
        until(lambda: here.bob.get(f"/api/task?id={task}")["status"] != "running", "the run does not end")
        # A service has it by its policy.
        policy = here.home / "gone.toml"
        policy.write_text(f"""
version = 1
listen = "127.0.0.1:{free_port()}"
identity = "{here.bob.home}/tacit-ui/keys/tacit.key"
state = "{here.home}/gone"
[peers.used]
key = "{here.home}/used.pub"
[sources.table]
input = "{file}"
key = ["mail:email"]
rows_in_total = 100
[jobs.shared]
source = "table"
allow = ["used"]
reveal = ["rows"]
result = ["peer"]
max_peer_keys = 100
runs_a_day = 1
purpose = "a test"
""")
        task = here.bob.post("/api/start", {"kind": "serve", "policy": str(policy)})[1]["id"]
        self.assertEqual(here.bob.post("/api/delete", {"name": "gone.csv"})[0], 409)
        here.bob.post("/api/cancel", {"id": task})
        until(lambda: here.bob.get(f"/api/task?id={task}")["status"] != "running", "the service does not end")
        self.assertEqual(here.bob.post("/api/delete", {"name": "gone.csv"})[0], 200)
        self.assertFalse(file.exists())

    def test_the_addresses_are_those_that_others_reach(self):
        for address in here.alice.get("/api/state")["addresses"]:
            self.assertNotRegex(address, r"^(127\.|0\.0\.0\.0|169\.254\.|::1$|fe80)")
        self.assertEqual(here.alice.ask("/api/state", X_Tacit_Token=None)[0], 403)

    def test_slow_and_broken_clients_hold_nobody_up(self):
        silent = [socket.create_connection(("127.0.0.1", here.alice.port)) for _ in range(100)]
        begin = time.monotonic()
        self.assertEqual(here.alice.ask("/")[0], 200)
        self.assertLess(time.monotonic() - begin, 2)
        for one in silent:
            one.close()
        code, _, said = here.alice.ask("/api/start", "POST", b"x" * (300 << 10))
        self.assertEqual(code, 413, said)
        self.assertEqual(here.alice.ask("/api/start", "POST", b"{")[0], 400)

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
        prefixes = tuple(re.findall(r"\bt\(`([\w.]+\.)\$", sources)) + tuple(re.findall(r"`(phase\.|kind\.)\$", sources)) + ("said.",)
        unused = {key for key in english if key.removesuffix(".one") not in named and not key.startswith(prefixes)
                  and f'"{key}"' not in sources and not re.fullmatch(r"\w+\.step", key)}
        self.assertEqual(unused, set())

    def test_the_sentences_that_are_translated_are_the_command_s_own(self):
        sources = " ".join(path.read_text() for path in (ROOT / "crates").glob("*/src/**/*.rs"))
        # A literal that goes on in the next line; and values, which are the table's {names}.
        sources = re.sub(r"\{[\w.:]*\}", "\0", re.sub(r"\\\n\s*", "", sources))
        said = {key: text for key, text in json.loads((WORDS / "en.json").read_text()).items() if key.startswith("said.")}
        self.assertGreater(len(said), 80)
        for key, text in said.items():
            for piece in re.split(r"\{\w+\}|[;:.,] |[()`]|\b(?:you|yours|your|the peer|gives?|distinct|which|rows)\b", text):
                # A sentence is put together where a value, a party or a part of it begins.
                words = piece.strip(" .,:?").split()
                splits = range(len(words), 0, -1)
                self.assertTrue(any(" ".join(words[:at]) in sources and " ".join(words[at:]) in sources for at in splits) or len(words) < 3,
                                f"{key}: no source has {piece!r}")
