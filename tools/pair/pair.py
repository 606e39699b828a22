#!/usr/bin/env python3
"""PAIR as docs/use/pair.md defines it, a second time: written from the page, on Python's integers, without the crates.

    python3 tools/pair/pair.py

prints docs/pair-vectors.json, made from the values and secrets below. Normal forms are those of tools/keys, the group
is that of tools/reference.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path += [str(TOOLS / "keys"), str(TOOLS / "reference")]

import ristretto  # noqa: E402
from keys import Refused, normalise  # noqa: E402

ID_BYTES = 8


def identity(label, public):
    """What names a secret in lists and files."""
    return hashlib.sha256(label.encode() + b"\0" + public).digest()[:ID_BYTES].hex()


def key_id(scalar):
    return identity("tacit-pair-key", ristretto.encode(ristretto.multiply(scalar, ristretto.GENERATOR)))


def salt_id(salt):
    return identity("tacit-pair-salt", salt)


def text_of(data):
    return base64.b64encode(data).decode()


def scalar_text(scalar):
    return text_of(scalar.to_bytes(32, "little"))


def match_key(kind, value):
    """The SHA-256 of the normal form in hexadecimal digits; hashes of a list as they are, in lower case."""
    is_hashed = kind.startswith("sha256-hex") or kind.endswith(":sha256")
    return normalise(kind if is_hashed else f"{kind}:sha256", value)


def hashed(salt, key):
    return hashlib.sha256(salt + key.encode()).digest()


def element(digest):
    return ristretto.from_uniform(hashlib.sha512(digest).digest())


def key_file(role, scalar, made, expires):
    lines = ["tacit-pair-key 1", f"role {role}", f"id {key_id(scalar)}", f"made {made}", f"expires {expires}"]
    return "\n".join([*lines, f"scalar {scalar_text(scalar)}", ""])


def salt_file(salt, made, expires):
    lines = ["tacit-pair-salt 1", f"id {salt_id(salt)}", f"made {made}", f"expires {expires}", f"salt {text_of(salt)}"]
    return "\n".join([*lines, ""])


def scalar_of(seed):
    return int.from_bytes(hashlib.sha512(seed.encode()).digest(), "little") % ristretto.ORDER


SALT = hashlib.sha256(b"tacit pair vectors: salt").digest()
PUBLISHER = scalar_of("tacit pair vectors: publisher")
ADVERTISER = scalar_of("tacit pair vectors: advertiser")
MADE, KEY_EXPIRES, SALT_EXPIRES = "2026-11-28", "2027-05-27", "2026-12-28"

VALUES = [
    ("email", "USER@example.com"),
    ("email", "jane@email.com"),
    ("email", " Jane@Email.COM "),
    ("email", "jane.doe+shop@gmail.com"),
    ("email:gmail", "jane.doe+shop@gmail.com"),
    ("email:gmail", "JaneDoe@googlemail.com"),
    ("email", "jürgen@bücher.example"),
    ("phone:NL", "06 12345678"),
    ("phone", "+31 (0)6 1234 5678"),
    ("sha256-hex:email", "B4C9A289323B21A01C3E940F150EB9B8C542587F1ABFD8F0E1CC1FFC5E475514"),
    ("sha256-hex:phone", "c1d3756a586b6f0d419b3e3d1b328674fbc6c4b842367ee7ded780390fc548ae"),
    ("text", "Kunde 0042"),
    ("uuid", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"),
    *(("email", f"person{number}@example.org") for number in range(20)),
]

REFUSED = [
    ("the identity", bytes(32)),
    ("p, which is zero and not canonical", ristretto.P.to_bytes(32, "little")),
    ("1, which is odd and so negative", (1).to_bytes(32, "little")),
    ("all bits set", b"\xff" * 32),
    ("2^255 - 2, not canonical", (2**255 - 2).to_bytes(32, "little")),
    *(
        (f"{number}, of no point", number.to_bytes(32, "little"))
        for number in range(2, 40, 2)
        if ristretto.decode(number.to_bytes(32, "little")) is None
    ),
]


def vector(kind, value):
    key = match_key(kind, value)
    digest = hashed(SALT, key)
    point = element(digest)
    one, other = ristretto.multiply(PUBLISHER, point), ristretto.multiply(ADVERTISER, point)
    both = ristretto.multiply(ADVERTISER, one)
    if ristretto.encode(both) != ristretto.encode(ristretto.multiply(PUBLISHER, other)):
        raise AssertionError("keys do not commute")
    without = ristretto.multiply(pow(ADVERTISER, -1, ristretto.ORDER), both)
    if ristretto.encode(without) != ristretto.encode(one):
        raise AssertionError("a key does not come off")
    points = {"element": point, "publisher": one, "advertiser": other, "both": both}
    encoded = {name: text_of(ristretto.encode(point)) for name, point in points.items()}
    return {"type": kind, "value": value, "match_key": key, "hashed": digest.hex(), **encoded}


def vectors():
    return {
        "about": "PAIR in Tacit: docs/use/pair.md. Made by tools/pair/pair.py.",
        "version": 1,
        "salt": salt_file(SALT, MADE, SALT_EXPIRES),
        "publisher": key_file("publisher", PUBLISHER, MADE, KEY_EXPIRES),
        "advertiser": key_file("advertiser", ADVERTISER, MADE, KEY_EXPIRES),
        "identifiers": [vector(kind, value) for kind, value in VALUES],
        "refused": [{"why": why, "identifier": text_of(data)} for why, data in REFUSED],
    }


def is_refused(text):
    """Whether an identifier of a list is none: not canonical Base64 of a group element other than the identity."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return True
    return text_of(data) != text or not any(data) or ristretto.decode(data) is None


__all__ = ["Refused", "is_refused", "vectors"]

if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1, ensure_ascii=False))
