"""Servers that tests start and stop: PostgreSQL, and moto in the place of S3; the command, watched; and a way
between that counts and cuts."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from parties import free_address

TACIT = Path(__file__).resolve().parents[2] / "target" / "debug" / "tacit"
#: What no line of the command may show.
PASSWORD = "hunter2%Zw"
#: The same in an address.
ENCODED = "hunter2%25Zw"
SECRET = "wJalrXUtnFEMIxK7MDENG"


def free_port() -> int:
    return int(free_address().rsplit(":", 1)[1])


def environment(**more: str) -> dict[str, str]:
    """Ours without what it says of databases and stores, and with `more`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "AWS"))}
    return kept | more


@dataclass
class Said:
    code: int
    out: str
    err: str
    #: The most memory that the process ever held, in bytes.
    peak: int

    def fails_with(self, code: int, *words: str) -> None:
        lines = [line for line in self.err.splitlines() if line.startswith(("error: ", '{"error"'))]
        assert len(lines) == 1, self
        assert self.code == code, self
        for word in words:
            assert word in lines[0], self


def start(
    *words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [TACIT, *words],
        env=env or environment(),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait(process: subprocess.Popen[str], limit: float = 60) -> Said:
    """Until its end; what it said shows neither a password nor a secret."""
    peak, status = 0, Path(f"/proc/{process.pid}/status")
    outputs: list[tuple[str, str]] = []
    reader = threading.Thread(target=lambda: outputs.append(process.communicate()))
    reader.start()
    end = time.monotonic() + limit
    while reader.is_alive():
        with contextlib.suppress(OSError, StopIteration, IndexError):
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
            peak = max(peak, int(line.split()[1]) * 1024)
        if time.monotonic() > end:
            process.kill()
        reader.join(0.005)
    assert time.monotonic() <= end, f"hung: {outputs}"
    said = Said(process.returncode, *outputs[0], peak)
    for hidden in (PASSWORD, ENCODED, "hunter2", SECRET):
        assert hidden not in said.out + said.err, said
    assert "panicked" not in said.err, said
    return said


def run(*words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> Said:
    return wait(start(*words, env=env, cwd=cwd))


def intersect(ours: list[str], theirs: list[str], env: dict[str, str] | None = None) -> tuple[Said, Said]:
    """Both sides of `tacit psi`; the second gets the result."""
    address = free_address()
    common = ["--insecure-plaintext", "--json", "--connect-timeout", "30"]
    first = start("psi", "--listen", address, "--result", "peer", *theirs, *common, env=env)
    try:
        second = run("psi", "--connect", address, "--result", "me", *ours, *common, env=env)
        return wait(first), second
    finally:
        first.kill()


def is_listening(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


def until(holds, limit: float = 30) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


@dataclass
class Database:
    """A PostgreSQL server on this machine alone, with a folder of its own."""

    folder: Path
    binaries: Path
    port: int
    user: dict[str, int]
    process: subprocess.Popen[bytes] | None = None
    more: list[str] = field(default_factory=list)

    def begin(self) -> None:
        settings = ["fsync=off", "shared_buffers=32MB", f"unix_socket_directories={self.folder}", *self.more]
        words = [word for setting in settings for word in ("-c", setting)]
        command = [
            self.binaries / "postgres",
            "-D",
            self.folder / "data",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen([*command, *words], stdout=log, stderr=log, cwd="/", **self.user)
        ready = [self.binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        until(lambda: subprocess.run(ready, check=False).returncode == 0)

    def end(self) -> None:
        if self.process:
            # At once, whatever a backend waits for.
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def do(self, sql: str) -> str:
        """What `sql` gives, in the form of `COPY`."""
        command = [self.binaries / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]
        command += ["-p", str(self.port), "-U", "owner", "-At", "postgres"]
        env = environment(PGPASSWORD=PASSWORD)
        done = subprocess.run(command, input=sql, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def url(self, query: str, *, password: bool = True, more: str = "") -> str:
        user = f"owner:{ENCODED}" if password else "owner"
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres{more}#{query}"


def binaries_of_postgres() -> Path | None:
    """Where the server's programs are; installed first where we may."""

    def find() -> Path | None:
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        path = found[-1] if found else shutil.which("initdb")
        return Path(path).resolve().parent if path else None

    if not find() and os.geteuid() == 0 and shutil.which("apt-get"):
        for words in (["update", "-qq"], ["install", "-y", "-qq", "postgresql"]):
            subprocess.run(["apt-get", *words], capture_output=True, check=False)
    return find()


@contextlib.contextmanager
def database(more: list[str] | None = None) -> Iterator[Database]:
    binaries = binaries_of_postgres()
    if binaries is None:
        pytest.skip("NOT RUN: there is no PostgreSQL server here, and none could be installed")
    folder = Path(tempfile.mkdtemp(prefix="tacit-postgres-"))
    user = {}
    if os.geteuid() == 0:
        # A server refuses to be root's.
        import pwd

        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    initdb = [binaries / "initdb", "-D", folder / "data", "-U", "owner", "-A", "scram-sha-256", "-E", "UTF8"]
    initdb += ["--locale=C.UTF-8", "--no-sync", f"--pwfile={secret}"]
    made = subprocess.run(initdb, capture_output=True, text=True, check=False, cwd="/", **user)
    assert made.returncode == 0, made.stderr
    server = Database(folder, binaries, free_port(), user, more=more or [])
    try:
        server.begin()
        yield server
    finally:
        server.end()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Store:
    """moto in the place of S3."""

    port: int
    process: subprocess.Popen[bytes]

    def env(self, port: int | None = None, **more: str) -> dict[str, str]:
        given = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}",
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            # So that nobody asks the network for a machine's role.
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        return environment(**(given | more))

    def client(self):  # type: ignore[no-untyped-def]
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def put(self, key: str, content: bytes) -> None:
        self.client().put_object(Bucket="bucket", Key=key, Body=content)

    def get(self, key: str) -> bytes:
        body: bytes = self.client().get_object(Bucket="bucket", Key=key)["Body"].read()
        return body

    def names(self) -> set[str]:
        return {found["Key"] for found in self.client().list_objects_v2(Bucket="bucket").get("Contents", [])}

    def uploads(self) -> int:
        return len(self.client().list_multipart_uploads(Bucket="bucket").get("Uploads", []))


@contextlib.contextmanager
def store(**more: str) -> Iterator[Store]:
    server = Path(sys.executable).parent / "moto_server"
    try:
        import boto3  # noqa: F401
    except ImportError:
        server = Path("/nowhere")
    if not server.exists():
        pytest.skip("NOT RUN: moto, which stands for S3, is not installed (python/requirements-stores.txt)")
    port = free_port()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [server, "-H", "127.0.0.1", "-p", str(port)], env=environment(**more), stdout=quiet, stderr=quiet
    )
    try:

        def answers() -> bool:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/data.json", timeout=5)
                return True
            return False

        until(answers, 60)
        yield Store(port, process)
    finally:
        process.kill()
        process.wait()


class Way:
    """A way to a server that counts what comes down it and what goes up, and cuts everything after so many bytes."""

    def __init__(self, to: int, *, down: int | None = None, up: int | None = None) -> None:
        self.to, self.limits, self.passed = to, {"down": down, "up": up}, {"down": 0, "up": 0}
        self.lock = threading.Lock()
        self.streams: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self.lock:
            for stream in self.streams:
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)
            self.streams.clear()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            with self.lock:
                self.streams += [near, far]
            threading.Thread(target=self._pass, args=(near, far, "up"), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, "down"), daemon=True).start()

    def _pass(self, start: socket.socket, end: socket.socket, which: str) -> None:
        with contextlib.suppress(OSError):
            while piece := start.recv(1 << 16):
                limit = self.limits[which]
                with self.lock:
                    self.passed[which] += len(piece)
                    over = limit is not None and self.passed[which] > limit
                if over:
                    self.cut()
                    return
                end.sendall(piece)
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_WR)
