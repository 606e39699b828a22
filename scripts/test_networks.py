#!/usr/bin/env python3
"""Two sides that cannot reach each other, in network namespaces of their own: by a relay, a proxy and a code.

Three namespaces: Alice's and Bob's each have one line, to a third that passes nothing on between them. There a relay
runs, and an HTTP proxy that alone may be reached from Carol's.

    scripts/test_networks.py

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed. Where this user may not make network
namespaces, or there is no `ip` (Debian's package `iproute2`), it says so.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TACIT = Path(os.environ.get("TACIT", ROOT / "target/debug/tacit"))
NAME = f"tacit{os.getpid()}"
LIMIT = 60
# The proxy: CONNECT alone, to the relay's address alone, as a firm's would.
PROXY = """
import socket, threading, sys
listener = socket.create_server((sys.argv[1], 3128))
print("ready", flush=True)
def copy(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
def serve(near):
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        head += near.recv(1)
    host, port = head.split()[1].decode().rsplit(":", 1)
    if host != sys.argv[2]:
        near.sendall(b"HTTP/1.1 403 Forbidden\\r\\n\\r\\n")
        return near.close()
    far = socket.create_connection((host, int(port)))
    near.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
    threading.Thread(target=copy, args=(near, far), daemon=True).start()
    copy(far, near)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


class Networks:
    """The namespaces, and what runs in the middle."""

    # The middle's address on each line, and the side's.
    LINES = {"alice": ("10.201.1.1", "10.201.1.2"), "bob": ("10.201.2.1", "10.201.2.2"), "carol": ("10.201.3.1", "10.201.3.2")}

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp())
        self.running = []
        for place in ("middle", *self.LINES):
            ip("netns", "add", self.of(place))
            ip("-n", self.of(place), "link", "set", "lo", "up")
        for number, (side, (near, far)) in enumerate(self.LINES.items()):
            one, two = f"tm{number}", f"ts{number}"
            ip("-n", self.of("middle"), "link", "add", one, "type", "veth", "peer", "name", two, "netns", self.of(side))
            for place, device, address in (("middle", one, near), (side, two, far)):
                ip("-n", self.of(place), "addr", "add", f"{address}/24", "dev", device)
                ip("-n", self.of(place), "link", "set", device, "up")
            if side != "carol":
                # The whole world is behind the middle, which passes nothing on.
                ip("-n", self.of(side), "route", "add", "default", "via", near)
        # An address that both lines lead to, as a relay in the world has.
        ip("-n", self.of("middle"), "addr", "add", "10.202.0.1/32", "dev", "lo")
        self.start("middle", TACIT, "relay", "--listen", "10.202.0.1:7710")
        self.start("middle", sys.executable, "-c", PROXY, "10.201.3.1", "10.202.0.1")

    def of(self, place):
        return f"{NAME}{place}"

    def popen(self, place, *command):
        return subprocess.Popen(
            ["ip", "netns", "exec", self.of(place), *map(str, command)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self, place, *command):
        """What runs until the end; its first line says that it is ready."""
        run = self.popen(place, *command)
        self.running.append(run)
        assert run.stdout.readline()

    def both(self, one, two):
        """Runs the command of both places; what either said, and its exit code."""
        runs = [self.popen(place, TACIT, *words) for place, *words in (one, two)]
        said = [None, None]

        def wait(at):
            out, err = runs[at].communicate(timeout=LIMIT)
            said[at] = (runs[at].returncode, out, err)

        threads = [threading.Thread(target=wait, args=(at,)) for at in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return said

    def end(self):
        for run in self.running:
            run.kill()
            run.communicate()
        for place in ("middle", *self.LINES):
            ip("netns", "del", self.of(place), check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def side(own, peer, table, *more):
    return [
        "psi", "--identity", f"{own}.key", "--peer", f"{peer}.pub", "--input", f"{table}.csv",
        "--key", "email", "--result", "both", "--connect-timeout", "30", *more,
    ]  # fmt: skip


class TwoFirewalls(unittest.TestCase):
    def setUp(self):
        for at, name in enumerate(("alice", "bob", "carol")):
            if not (NETWORKS.folder / f"{name}.key").exists():
                subprocess.run([TACIT, "keygen", "--out", f"{name}.key"], cwd=NETWORKS.folder, check=True, capture_output=True)
            rows = "".join(f"user{i}@example.com\n" for i in range(10 * at, 10 * at + 40))
            (NETWORKS.folder / f"{name}.csv").write_text("email\n" + rows)

    def test_neither_reaches_the_other(self):
        listener = ["alice", *side("alice", "bob", "alice", "--listen", "0.0.0.0:7700")]
        listener[listener.index("30")] = "2"
        caller = ["bob", *side("bob", "alice", "bob", "--connect", "10.201.1.2:7700")]
        caller[caller.index("30")] = "2"
        said = NETWORKS.both(listener, caller)
        self.assertEqual([code for code, *_ in said], [4, 4], said)

    def test_a_relay_joins_them(self):
        for threads in ("1", "3"):
            via = ["--via", "10.202.0.1:7710", "--threads", threads]
            said = NETWORKS.both(["alice", *side("alice", "bob", "alice", *via)], ["bob", *side("bob", "alice", "bob", *via)])
            for code, out, err in said:
                self.assertEqual(code, 0, err)
                self.assertIn("30 matches", out)

    def test_one_is_behind_a_proxy_too(self):
        via = ["--via", "10.202.0.1:7710"]
        behind = [*via, "--proxy", "10.201.3.1:3128"]
        said = NETWORKS.both(["alice", *side("alice", "carol", "alice", *via)], ["carol", *side("carol", "alice", "carol", *behind)])
        for code, out, err in said:
            self.assertEqual(code, 0, err)
            self.assertIn("20 matches", out)
        without = ["carol", *side("carol", "alice", "carol", *via)]
        without[without.index("30")] = "2"
        waiting = ["alice", *side("alice", "carol", "alice", *via)]
        waiting[waiting.index("30")] = "2"
        self.assertEqual([code for code, *_ in NETWORKS.both(waiting, without)], [4, 4])

    def test_a_code_over_the_relay_gives_both_the_others_key(self):
        invite = NETWORKS.popen("alice", TACIT, "invite", "--via", "10.202.0.1:7710", "--identity", "new-alice.key", "--out", "of-bob.pub")
        code = re.fullmatch(r"code (\S+)\n", invite.stdout.readline())[1]
        join = NETWORKS.popen("bob", TACIT, "join", code, "--via", "10.202.0.1:7710", "--identity", "new-bob.key", "--out", "of-alice.pub")
        for run in (join, invite):
            out, err = run.communicate(timeout=LIMIT)
            self.assertEqual(run.returncode, 0, err)
        read = lambda name: (NETWORKS.folder / name).read_text().split()[1]
        self.assertEqual(read("of-bob.pub"), read("new-bob.pub"))
        self.assertEqual(read("of-alice.pub"), read("new-alice.pub"))


if __name__ == "__main__":
    if not TACIT.exists():
        sys.exit(f"{TACIT} is not there: cargo build makes it")
    may = shutil.which("ip") and ip("netns", "add", NAME, check=False).returncode == 0
    if not may:
        print("skipped: no network namespaces here (they take root and Debian's package iproute2)")
        print("0 passed, 0 failed")
        sys.exit(0)
    ip("netns", "del", NAME)
    NETWORKS = Networks()
    try:
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(TwoFirewalls)
        result = unittest.TextTestRunner(verbosity=0).run(suite)
    finally:
        NETWORKS.end()
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
