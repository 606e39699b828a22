"""Frames, the handshake and the end of a run, as docs/wire/channel.md has them; transcripts and commitments."""

import os
import socket
import struct
import time

from blake3 import Blake3, keyed

WIRE_VERSION = 4
RELEASE = "0.1.0"
HELLO, DATA, BYE = 0xA7, 0xD7, 0xB7
MAX_FRAME = 1 << 20
FIRST, SECOND = 1, 2
CONTENT = 0x00746E65746E6F63


class Ended(Exception):
    """The peer's end of the connection: orderly with a farewell, or not."""

    def __init__(self, orderly):
        super().__init__("farewell" if orderly else "the connection ended without a farewell")
        self.orderly = orderly


class Refused(Exception):
    """What this side refuses of the peer's."""


def refuse_unless(condition, what):
    if not condition:
        raise Refused(what)


def u64(value):
    return struct.pack("<Q", value)


def framed(data):
    return u64(len(data)) + data


def labelled(context, *parts):
    """BLAKE3 in its mode of key derivation over parts that are framed by their lengths."""
    hasher = Blake3.derive_key(context)
    for part in parts:
        hasher.update(framed(part))
    return hasher.digest()


class Transcript:
    """A running hash from which challenges are drawn (docs/wire/primitives.md)."""

    def __init__(self, domain):
        self.hasher = Blake3.derive_key("tacit 2026 transcript v1")
        self.append("domain", domain.encode())

    def _item(self, kind, label, length):
        self.hasher.update(bytes([kind]) + framed(label.encode()) + u64(length))

    def append(self, label, data):
        self._item(0, label, len(data))
        self.hasher.update(data)
        return self

    def append_u64(self, label, value):
        return self.append(label, u64(value))

    def challenge(self, label, length):
        self._item(1, label, length)
        return self.hasher.digest(length)

    def copy(self):
        other = object.__new__(Transcript)
        other.hasher = self.hasher.copy()
        return other


def commitment(context, message, opening):
    hasher = Blake3.derive_key("tacit 2026 commitment v1")
    return hasher.update(framed(context) + opening + message).digest()


class Recording:
    """A hash of what passes during some steps, both directions by themselves."""

    def __init__(self):
        self.sent, self.received = Blake3(), Blake3()

    def digest(self, party):
        order = [self.sent, self.received] if party == FIRST else [self.received, self.sent]
        both = Blake3.derive_key("tacit 2026 recording v1")
        for direction in order:
            both.update(u64(direction.count) + direction.digest())
        return both.digest()


class Channel:
    """One end of a connection. `party` is FIRST for the end that listened and SECOND for the one that called."""

    def __init__(self, sock, party):
        self.sock, self.party, self.session = sock, party, bytes(32)
        self.waiting, self.inbox, self.ended = b"", b"", None
        self.instances = 0
        self.recordings = []
        # What a cheater does to a message before it is sent: a function from its number and bytes to bytes.
        self.tamper = None
        self.messages = 0
        # The seed of a run whose messages are vectors; otherwise randomness is the operating system's.
        self.seed, self.drawn = None, 0

    def next_instance(self):
        self.instances += 1
        return self.instances - 1

    def random(self, count):
        if self.seed is None:
            return os.urandom(count)
        self.drawn += 1
        return keyed(self.seed, u64(self.drawn), count)

    def send(self, data):
        if self.tamper:
            data = self.tamper(self.messages, data)
        self.messages += 1
        for recording in self.recordings:
            recording.sent.update(data)
        self.waiting += data

    def flush(self):
        data, self.waiting = self.waiting, b""
        for at in range(0, len(data), MAX_FRAME):
            self.frame(DATA, data[at : at + MAX_FRAME])

    def frame(self, kind, payload):
        self.raw(bytes([kind]) + struct.pack("<I", len(payload))[:3] + payload)

    def raw(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            # The peer may have said something before it went.
            pass

    def _exactly(self, count):
        out = b""
        while len(out) < count:
            try:
                more = self.sock.recv(count - len(out))
            except ConnectionError:
                more = b""
            if not more:
                raise Ended(False)
            out += more
        return out

    def _frame(self, wanted):
        head = self._exactly(4)
        length = int.from_bytes(head[1:], "little")
        if head[0] == BYE and length <= 1:
            self._exactly(length)
            raise Ended(True)
        refuse_unless(head[0] == wanted, f"a frame of kind {head[0]:#x}")
        refuse_unless(0 < length <= MAX_FRAME, f"a frame of {length} bytes")
        return self._exactly(length)

    def recv(self, count):
        self.flush()
        while len(self.inbox) < count:
            self.inbox += self._frame(DATA)
        out, self.inbox = self.inbox[:count], self.inbox[count:]
        for recording in self.recordings:
            recording.received.update(out)
        return out

    def recv_u64(self):
        return struct.unpack("<Q", self.recv(8))[0]

    def recv_hello(self):
        return self._frame(HELLO)

    def close(self):
        self.flush()
        self.frame(BYE, b"")
        self.sock.close()


def hello(protocol, role, peer_role, parameters, *, nonce=None, version=WIRE_VERSION, release=RELEASE, purpose=0):
    """A greeting; `parameters` is a dict, or a list of pairs where a cheater wants them out of order."""
    pairs = sorted(parameters.items()) if isinstance(parameters, dict) else parameters
    name = release.encode()
    out = b"TACIT\0" + struct.pack("<I", version) + bytes([len(name)]) + name + bytes([purpose])
    out += os.urandom(32) if nonce is None else nonce
    texts = [protocol, role, peer_role, *[text for pair in pairs for text in pair]]
    for text in texts:
        data = text.encode()
        out += struct.pack("<H", len(data)) + data
    return out


def parse_hello(data):
    """(version, release, purpose, nonce, protocol, role, peer's role, parameters)."""
    refuse_unless(data[:6] == b"TACIT\0", "not a greeting of Tacit")
    version, length = struct.unpack("<I", data[6:10])[0], data[10]
    release, at = data[11 : 11 + length].decode(), 11 + length
    purpose, nonce, rest = data[at], data[at + 1 : at + 33], data[at + 33 :]
    texts = []
    while rest:
        size = struct.unpack("<H", rest[:2])[0]
        refuse_unless(len(rest) >= 2 + size, "the greeting ends too early")
        texts.append(rest[2 : 2 + size].decode())
        rest = rest[2 + size :]
    refuse_unless(len(texts) >= 3 and len(texts) % 2 == 1, "the greeting ends too early")
    names, values = texts[3::2], texts[4::2]
    refuse_unless(all(a < b for a, b in zip(names, names[1:])), "the greeting's parameters are out of order")
    return version, release, purpose, nonce, *texts[:3], dict(zip(names, values))


def listener():
    """A socket that listens on this machine, and its address."""
    sock = socket.create_server(("127.0.0.1", 0))
    return sock, "127.0.0.1:%d" % sock.getsockname()[1]


def accept(sock, timeout=60, lives=lambda: True):
    """The next connection, as long as somebody `lives` who could call."""
    end = time.monotonic() + timeout
    sock.settimeout(0.2)
    while True:
        try:
            connection, _ = sock.accept()
            break
        except TimeoutError:
            if time.monotonic() > end or not lives():
                raise
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(timeout)
    return Channel(connection, FIRST)


def connect(address, timeout=60, lives=lambda: True):
    """Calls until somebody listens, or nobody `lives` any more who could."""
    host, port = address.rsplit(":", 1)
    end = time.monotonic() + timeout
    while True:
        try:
            connection = socket.create_connection((host, int(port)), timeout=timeout)
            if connection.getsockname() == connection.getpeername():
                # Where nobody listens yet a connection may meet itself.
                connection.close()
                raise ConnectionRefusedError
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Channel(connection, SECOND)
        except OSError:
            if time.monotonic() > end or not lives():
                raise
            time.sleep(0.01)


def greet(channel, job, parameters):
    """The handshake of a new session; `job` is (protocol, role, peer's role). Returns the peer's greeting."""
    mine = hello(*job, parameters, nonce=channel.random(32))
    # The end that called speaks first.
    if channel.party == SECOND:
        channel.frame(HELLO, mine)
        theirs = channel.recv_hello()
    else:
        theirs = channel.recv_hello()
        channel.frame(HELLO, mine)
    version, release, purpose, _, protocol, role, peer_role, terms = parse_hello(theirs)
    refuse_unless((version, release, purpose) == (WIRE_VERSION, RELEASE, 0), "another release, or no new session")
    refuse_unless(protocol == job[0], f"another job: {protocol}")
    differ = {k: (parameters.get(k), terms.get(k)) for k in {*parameters, *terms} if parameters.get(k) != terms.get(k)}
    refuse_unless(not differ, f"settings differ: {differ}")
    refuse_unless((peer_role, role) == (job[1], job[2]), "roles do not match")
    confirm_session(channel, mine, theirs)
    return theirs


def confirm_session(channel, mine, theirs):
    first, second = (mine, theirs) if channel.party == FIRST else (theirs, mine)
    channel.session = labelled("tacit 3 session id", first, second, b"")

    confirm(channel, "tacit 3 session confirmation")


def confirm(channel, context):
    """Both sides' tags of the channel's id."""

    def tag(end):
        return labelled(context, channel.session, bytes([end]))

    channel.frame(HELLO, tag(channel.party))
    refuse_unless(channel.recv_hello() == tag(3 - channel.party), "the handshake was changed on its way")
    channel.audit = Recording()
    channel.recordings = [channel.audit]


def join(address, session, index):
    """Calls for channel `index` of a session that this side opened by a call."""
    channel = connect(address)

    def greeting(end):
        name = RELEASE.encode()
        head = b"TACIT\0" + struct.pack("<I", WIRE_VERSION) + bytes([len(name)]) + name + b"\x01"
        return head + labelled("tacit 3 channel join", session, struct.pack("<H", index), bytes([end]))

    channel.frame(HELLO, greeting(SECOND))
    refuse_unless(channel.recv_hello() == greeting(FIRST), "the channel belongs to another session")
    channel.session = labelled("tacit 3 channel id", session, struct.pack("<H", index), b"")
    confirm(channel, "tacit 3 channel confirmation")
    return channel


def sized(data):
    return u64(len(data)) + data


def pick(channel, protocol, variant=b""):
    """The first party's side of a plan: it may ask how fast the link is, and need not."""
    channel.send(u64(0) + sized(protocol) + sized(variant))


def picked(channel):
    """The second party's side: answers, and is told the protocol and its variant."""
    while question := channel.recv_u64():
        refuse_unless(question <= 1 << 23, "a measurement of more than 8 MiB")
        channel.send(u64(0) if question == 1 else bytes(-(-question // 65536) * 65536))
    names = []
    for _ in range(2):
        length = channel.recv_u64()
        refuse_unless(length <= 64, "a name of more than 64 bytes")
        names.append(channel.recv(length))
    return names


def finish(channel):
    """The end of a run without TLS: both sides compare what was sent and what arrived, and part."""
    audit = channel.audit
    channel.recordings.remove(audit)
    channel.send(audit.sent.digest())
    theirs = channel.recv(32)
    refuse_unless(theirs == audit.received.digest(), "what arrived is not what the peer sent")
    channel.send(u64(CONTENT))
    refuse_unless(channel.recv_u64() == CONTENT, "the peer is not content")
    channel.close()
