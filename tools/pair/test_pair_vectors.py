"""The vectors of docs/pair-vectors.json: they are what the second implementation makes, and hold what the page says.

    python3 tools/pair/test_pair_vectors.py

Ends with `N passed, N failed`.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

import pair
import ristretto

PUBLISHED = Path(__file__).resolve().parents[2] / "docs/pair-vectors.json"

# The text's example of a hashed address, which is that of user@example.com.
EXAMPLE = "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514"
# RFC 9496, appendix A.1 and A.3: small multiples of the generator, and elements derived from SHA-512 hashes of texts.
MULTIPLES = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
]
DERIVED = [
    (
        "Ristretto is traditionally a short shot of espresso coffee",
        "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46",
    ),
    (
        "made with the normal amount of ground coffee but extracted with",
        "f26e5b6f7d362d2d2a94c5d0e7602cb4773c95a2e5c31a64f133189fa76ed61b",
    ),
]


def the_group_is_the_standards():
    for number, encoded in enumerate(MULTIPLES):
        assert ristretto.encode(ristretto.multiply(number, ristretto.GENERATOR)).hex() == encoded, number
    for text, encoded in DERIVED:
        derived = ristretto.from_uniform(hashlib.sha512(text.encode()).digest())
        assert ristretto.encode(derived).hex() == encoded, text


def the_published_file_is_what_the_script_makes():
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == pair.vectors()


def spellings_of_one_address_are_one_identifier():
    by_value = {(one["type"], one["value"]): one for one in published()["identifiers"]}
    plain, spelt = by_value["email", "jane@email.com"], by_value["email", " Jane@Email.COM "]
    assert plain["both"] == spelt["both"]
    dotted = [one["both"] for one in by_value.values() if "doe" in one["value"].lower()]
    assert len(set(dotted)) == 2, "one of email, and one of both addresses of email:gmail"


def the_match_key_of_an_address_is_what_the_text_says():
    """ASCII letters in lower case, SHA-256, no salt: for an address without anything else to normalise."""
    for one in published()["identifiers"]:
        if one["type"] == "email" and one["value"].isascii():
            lower = one["value"].strip().lower().encode()
            assert one["match_key"] == hashlib.sha256(lower).hexdigest(), one["value"]
    keys = {one["value"]: one["match_key"] for one in published()["identifiers"]}
    assert keys["USER@example.com"] == EXAMPLE


def what_is_refused_is_no_identifier():
    for one in published()["refused"]:
        assert pair.is_refused(one["identifier"]), one["why"]
    for one in published()["identifiers"]:
        for name in ("element", "publisher", "advertiser", "both"):
            assert not pair.is_refused(one[name])
            data = base64.b64decode(one[name])
            assert pair.is_refused(base64.b64encode(bytes([data[0] ^ 1]) + data[1:]).decode())


def published():
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))


TESTS = [
    the_group_is_the_standards,
    the_published_file_is_what_the_script_makes,
    spellings_of_one_address_are_one_identifier,
    the_match_key_of_an_address_is_what_the_text_says,
    what_is_refused_is_no_identifier,
]


def main():
    failed = 0
    for test in TESTS:
        try:
            test()
        except AssertionError as wrong:
            failed += 1
            print(f"FAILED {test.__name__}: {wrong}")
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
