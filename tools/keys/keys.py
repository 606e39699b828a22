"""The rules of docs/keys.md a second time, written from the page, to test its vectors and the command against.

`normalise(type, value)` gives the normal form, or raises `Refused` with the reason's word. The tables of regions and
countries are the published ones.
"""

import csv
import datetime
import decimal
import hashlib
import re
import unicodedata
from pathlib import Path

TABLES = Path(__file__).resolve().parents[2] / "crates/tacit-data/src/keys"
INVISIBLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]
DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
WHITE = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
APOSTROPHES = "'`\u00b4\u2018\u2019\u201b\u02b9\u02bb\u02bc\u02bd\u2032\uff07"
PARTING = ".,;:_/&()\"\u201c\u201d\u201e\u00ab\u00bb\u00b7"
LETTERS = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"}
HASH = re.compile(r"[0-9a-fA-F]{64}")


class Refused(Exception):
    """A value that is no key of its type."""


def table(name):
    with open(TABLES / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


REGIONS = {row["region"]: row for row in table("regions.csv") if row["region"] != "-"}
COUNTRIES = {row["country"]: row for row in table("postcodes.csv")}
CODES = {}
for entry in table("regions.csv"):
    lengths, trunk = CODES.setdefault(entry["calling_code"], (set(), []))
    lengths.update(map(int, entry["lengths"].split()))
    if entry["trunk"].startswith("0"):
        trunk.append(entry["trunk"])
    elif entry["trunk"] == "+":
        trunk.append("0")


def prelude(text):
    if text.isascii():
        return text.strip(WHITE)
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in text if not any(low <= ord(c) <= high for low, high in INVISIBLE))
    return unicodedata.normalize("NFC", text).strip(WHITE)


def digit(c):
    for base in (0x30, 0x660, 0x6F0):
        if base <= ord(c) <= base + 9:
            return str(ord(c) - base)
    return None


def fold(text):
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def words(text):
    return " ".join(word for word in re.split(f"[{re.escape(WHITE)}]+", text) if word)


def text_plain(value):
    return fold(value.strip(WHITE))


def text_nfkc(value):
    return words(prelude(fold(prelude(value))))


def email(value, gmail=False):
    seen = prelude(value)
    if not seen:
        raise Refused("empty")
    if seen.count("@") != 1:
        raise Refused("form")
    if any(c in WHITE or unicodedata.category(c) == "Cc" or c in '"(),:;<>[\\]' for c in seen):
        raise Refused("character")
    # A character at a time: Python's lower() knows a final sigma.
    lower = lambda text: unicodedata.normalize("NFC", "".join(c.lower() for c in text))
    local, domain = map(lower, seen.split("@"))
    domain = domain.removesuffix(".")
    labels = []
    for label in domain.split("."):
        if not label.isascii():
            if len(label) > 63:
                raise Refused("length")
            label = "xn--" + label.encode("punycode").decode()
        if not label or label.startswith("-") or label.endswith("-"):
            raise Refused("form")
        if not re.fullmatch("[a-z0-9-]+", label):
            raise Refused("character")
        if len(label) > 63:
            raise Refused("length")
        labels.append(label)
    if len(labels) < 2 or labels[-1].isdigit():
        raise Refused("form")
    domain = ".".join(labels)
    if gmail and domain in ("gmail.com", "googlemail.com"):
        local, domain = local.split("+")[0].replace(".", ""), "gmail.com"
    if not local:
        raise Refused("form")
    if len(local.encode()) > 64 or len(domain) > 253:
        raise Refused("length")
    return f"{local}@{domain}"


def finish(code, number, possible):
    if len(number) not in possible:
        raise Refused("length")
    return f"+{code}{number}"


def international(digits):
    for length in (1, 2, 3):
        code, number = digits[:length], digits[length:]
        if code.startswith("0"):
            break
        if len(code) < length or code not in CODES:
            continue
        possible, trunk = CODES[code]
        if trunk:
            number = number.removeprefix(trunk[-1])
            if number.startswith("0"):
                raise Refused("form")
        return finish(code, number, possible)
    raise Refused("range")


def phone(value, region=None):
    seen = prelude(value)
    number = seen[4:] if seen[:4].lower() == "tel:" else seen
    plus, digits = False, ""
    for c in number:
        if digit(c):
            digits += digit(c)
            if len(digits) > 24:
                raise Refused("length")
        elif c == "+" and not plus and not digits:
            plus = True
        elif not (c in WHITE or c in DASHES or c in "./()"):
            raise Refused("character")
    if not digits:
        raise Refused("form" if number else "empty")
    if plus:
        return international(digits)
    if region is None:
        raise Refused("ambiguous")
    row = REGIONS[region]
    dialled, trunk = row["international"], row["trunk"]
    if dialled != "-" and digits.startswith(dialled):
        return international(digits[len(dialled):])
    possible, bare = set(map(int, row["lengths"].split())), set(map(int, row["bare"].split()))
    if trunk == "+":
        raise Refused("ambiguous")
    national = digits
    if trunk != "-":
        cut = digits.removeprefix(trunk) if digits.startswith(trunk) else None
        if cut is not None and (len(cut) in possible or not bare):
            national = cut
        elif bare:
            possible = bare
        else:
            raise Refused("ambiguous")
        if national.startswith("0"):
            raise Refused("form")
    return finish(row["calling_code"], national, possible)


def date(value, order=None):
    seen = prelude(value)
    if not seen:
        raise Refused("empty")
    seen = "".join(digit(c) or ("-" if c in DASHES else c) for c in seen)
    seen = re.sub(r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]00:00(:00(\.0+)?)?$", r"\1", seen)
    if match := re.fullmatch("([0-9]{4})-([0-9]{2})-([0-9]{2})", seen):
        year, month, day = match.groups()
    elif order == "YMD" and (match := re.fullmatch("([0-9]{4})([0-9]{2})([0-9]{2})", seen)):
        year, month, day = match.groups()
    else:
        if re.fullmatch("[0-9]{8}", seen):
            raise Refused("ambiguous")
        match = re.fullmatch("([0-9]{1,4})([./ -])([0-9]{1,4})\\2([0-9]{1,4})", seen)
        if not match:
            raise Refused("form")
        if order is None:
            raise Refused("ambiguous")
        parts = dict(zip(order, match.group(1, 3, 4)))
        year, month, day = parts["Y"], parts["M"], parts["D"]
        if len(month) > 2 or len(day) > 2:
            raise Refused("form")
        if len(year) != 4:
            raise Refused("ambiguous")
    try:
        return datetime.date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        raise Refused("range") from None


def whole(value):
    seen = prelude(value)
    if not seen:
        raise Refused("empty")
    negative = seen[0] in DASHES
    digits = seen[1:] if negative or seen[0] == "+" else seen
    if not digits:
        raise Refused("form")
    out = ""
    for c in digits:
        if not digit(c):
            raise Refused("ambiguous" if c in WHITE or c in ",.'_\u2019" else "character")
        out += digit(c)
    out = out.lstrip("0")
    return ("-" if negative else "") + out if out else "0"


def exact(value, comma=False):
    seen = prelude(value)
    if not seen:
        raise Refused("empty")
    signed = seen[0] == "+" or seen[0] in DASHES
    front, e, power = re.fullmatch("(.*?)(?:([eE])(.*))?", seen[signed:], re.DOTALL).groups()
    mark, plain = "," if comma else ".", ""
    for c in front:
        if c == mark and "." not in plain:
            plain += "."
        elif digit(c):
            plain += digit(c)
        else:
            raise Refused("ambiguous" if c in WHITE or c in ",.'_\u2019" else "character")
    if e:
        minus = power[:1] if power[:1] == "+" or power[:1] and power[0] in DASHES else ""
        if not all(map(digit, power[len(minus):])):
            raise Refused("character")
        if power == minus:
            raise Refused("form")
        power = int(("-" if minus and minus != "+" else "") + "".join(map(digit, power[len(minus):])))
    if plain in ("", "."):
        raise Refused("form")
    with decimal.localcontext(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN):
        number = decimal.Decimal(plain)
        if number == 0:
            return "0"
        digits = number.as_tuple().digits
        trailing = len(digits) - len("".join(map(str, digits)).rstrip("0"))
        lowest = number.as_tuple().exponent + trailing + (power or 0)
        highest = number.adjusted() + (power or 0)
        if max(highest, 0) - min(lowest, 0) + 1 > 1024:
            raise Refused("length")
        text = format(number.scaleb(power or 0), "f")
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return ("-" if signed and seen[0] != "+" else "") + whole + ("." + fraction if fraction else "")


def uuid(value):
    seen = prelude(value)
    if not seen:
        raise Refused("empty")
    bare = "".join(c.lower() if c.isascii() else c for c in seen).removeprefix("urn:uuid:")
    if len(bare) > 1 and bare[0] == "{" and bare[-1] == "}":
        bare = bare[1:-1]
    if not re.fullmatch("[0-9a-f-]*", bare):
        raise Refused("character")
    digits = bare.replace("-", "")
    if len(digits) != 32:
        raise Refused("length")
    form = re.sub("(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", digits)
    if bare not in (digits, form):
        raise Refused("form")
    return form


def name(value):
    folded = fold(prelude("".join(c for c in value if c not in APOSTROPHES)))
    out, latin = "", False
    for c in unicodedata.normalize("NFD", folded):
        mark = unicodedata.category(c).startswith("M")
        if latin and 0x300 <= ord(c) <= 0x36F:
            continue
        if c in APOSTROPHES:
            continue
        if not mark:
            latin = "a" <= c <= "z" or 0xE0 <= ord(c) <= 0x24F
        if not mark and (c in WHITE or c in DASHES or c in PARTING):
            out += " "
        elif unicodedata.category(c) == "Cc":
            raise Refused("character")
        else:
            out += LETTERS.get(c, c)
    return words(unicodedata.normalize("NFC", out))


def postcode(value, country=None):
    code = ""
    for c in prelude(value):
        if digit(c):
            code += digit(c)
        elif c.isascii() and c.isalpha():
            code += c.upper()
        elif not (c in WHITE or c in DASHES or c == "."):
            raise Refused("character")
    if not code:
        raise Refused("empty")
    if country is None:
        if not 2 <= len(code) <= 12:
            raise Refused("length")
        return code
    row = COUNTRIES[country]
    for prefix in [""] + row["prefixes"].split():
        if not code.startswith(prefix):
            continue
        for pattern in row["patterns"].split():
            front, _, behind = pattern.partition("+")
            shape = {"9": "[0-9]", "A": "[A-Z]", "*": "[A-Z0-9]"}
            shaped = ["".join(shape.get(c, c) for c in part) for part in (front, behind)]
            if match := re.fullmatch(f"({shaped[0]}){shaped[1]}", code[len(prefix):]):
                return match.group(1)
    raise Refused("form")


def clear(kind, value):
    base, _, option = kind.partition(":")
    rules = {
        "text": lambda: text_nfkc(value) if option else text_plain(value),
        "email": lambda: email(value, option == "gmail"),
        "phone": lambda: phone(value, option or None),
        "date": lambda: date(value, option or None),
        "int": lambda: whole(value),
        "decimal": lambda: exact(value, option == "comma"),
        "uuid": lambda: uuid(value),
        "name": lambda: name(value),
        "postcode": lambda: postcode(value, option or None),
    }
    normal = rules[base]()
    if not normal:
        raise Refused("empty")
    return normal


def normalise(kind, value):
    if kind == "sha256-hex" or kind.startswith("sha256-hex:"):
        seen = prelude(value)
        if not HASH.fullmatch(seen):
            raise Refused("clear" if seen else "empty")
        return seen.lower()
    if kind.endswith(":sha256"):
        if HASH.fullmatch(prelude(value)):
            raise Refused("hashed")
        return hashlib.sha256(clear(kind.removesuffix(":sha256"), value).encode()).hexdigest()
    return clear(kind, value)
