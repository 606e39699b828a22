"""Numbers of documents that are tied to a bound: `2^-40.7<!-- bound: wmk17.44 -->`, which a page does not show.

Before the marker stands the number, as a power of two, written as `2^-40.7` or `2⁻⁴⁰`, or as a count, `1,657` or
`2.54 million`. It must be the bound, rounded as it is written, to the nearest or up; after `at most` it may not be below
it, nor above it by a factor of four or a quarter. A marker may name several bounds, as `a, b` or `a.{60, 80}`, for as many numbers with ` / `
or words between them. `none` says that
the number is no bound of ours, and why: `<!-- bound: none, a paper's -->`.
"""

import re

MARK = re.compile(r"<!-- bound: ([^>]*?) -->", re.DOTALL)
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
POWER = r"2\^\(?-?\d+(?:\.\d+)?|2[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+"
COUNT = r"\d[\d,]*(?:\.\d+)?"
NUMBER = re.compile(rf"(?P<power>{POWER})|(?P<count>{COUNT})(?P<million> million)?")
# What has to be tied in the pages that make promises.
PROMISE = re.compile(r"(?<![\w.])2(?:\^-\d+(?:\.\d+)?|⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def numbers(text, count):
    """The last `count` numbers before a marker, as (value, unit in the last place, whether it is a power of two)."""
    found = list(NUMBER.finditer(text[-80:]))[-count:]
    # Of `1.97 / 2.54 million` both are millions.
    scale = 1e6 if found and found[-1]["million"] else 1
    values = []
    for match in found:
        if match["power"]:
            digits = match["power"][1:].translate(DIGITS).strip("^(")
            values.append((float(digits), 10.0 ** -len(digits.partition(".")[2]), True))
        else:
            digits = match["count"].replace(",", "")
            here = 1 if "," in match["count"] else scale
            values.append((float(digits) * here, here * 10.0 ** -len(digits.partition(".")[2]), False))
    return values


def fits(bound, number, at_most):
    value, unit, power = number
    if power != bound.chance:
        return False
    if at_most:
        room = 2 if bound.chance else 0.25 * bound.value
        return bound.value <= value + 1e-9 <= bound.value + room + 1e-9
    return -unit / 2 <= value - bound.value + 1e-9 and value - bound.value < unit


def shown(text):
    """A document without its code, whose lines stay where they are."""
    return re.sub(r"(?ms)^```.*?^```$|`[^`]*`", lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def named(said):
    """The bounds that a marker names."""
    spread = re.sub(r"([\w./]*)\{([^}]*)\}", lambda of: ", ".join(of[1] + last for last in of[2].split(", ")), said)
    return spread.split(", ")


def ties(text, bounds):
    """(line, what is said, whether it holds) of each marker of a document."""
    text = shown(text)
    for mark in MARK.finditer(text):
        line = text.count("\n", 0, mark.start()) + 1
        said = " ".join(mark[1].split())
        if said.startswith("none, "):
            yield line, said, True
            continue
        at_most = said.startswith("at most ")
        names = named(said.removeprefix("at most "))
        missing = [name for name in names if name not in bounds]
        if missing:
            yield line, f"no bound is called {', '.join(missing)}", False
            continue
        written_there = numbers(text[: mark.start()], len(names))
        for name, number in zip(names, written_there + [None] * len(names)):
            ok = number is not None and fits(bounds[name], number, at_most)
            written = number and (f"2^{number[0]}" if number[2] else f"{number[0]:.10g}")
            exact = f"2^{bounds[name].value:.3f}" if bounds[name].chance else f"{bounds[name].value:.10g}"
            yield line, f"{name} is {exact}, written {written}", ok


def loose(text):
    """(line, number) of each chance that a page states and no marker ties."""
    text = shown(text)
    for promise in PROMISE.finditer(text):
        if not MARK.match(text, promise.end()):
            yield text.count("\n", 0, promise.start()) + 1, promise[0]
