#!/usr/bin/env python3
"""The models' table for docs/assurance.md: each check, its parameters, the page's bound and the exact value; and what the
broken variants are worth, which a model must find.

    tools/models/table.py [--write]     prints it, or puts it into the page between its marks
"""

import sys
from fractions import Fraction
from math import log2
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cut_and_choose  # noqa: E402
import extension  # noqa: E402
import garbling  # noqa: E402
import runs  # noqa: E402
import trees  # noqa: E402
import vole  # noqa: E402

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "assurance.md"
MODELS = [extension, trees, vole, garbling, cut_and_choose, runs]
BEGIN, END = "<!-- models: {} -->", "<!-- models end -->"


def holds(exact, relation, bound):
    return exact == bound if relation == "=" else exact <= bound


def number(value):
    """A fraction as it is, where it is short; else rounded, as a power of two where it is small."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value)
    bits = value.denominator.bit_length() - 1
    if value.denominator == 2**bits and value.numerator == 1 and bits > 10:
        return f"2^-{bits}"
    if value.denominator < 1000:
        return f"{value.numerator}/{value.denominator}"
    return f"2^{log2(value):.1f}" if value < Fraction(1, 2**16) else f"{float(value):.3g}"


def cases():
    """The games' lines: check, model, parameters, relation, bound, exact value."""
    for model in MODELS:
        for check, parameters, exact, relation, bound in model.cases():
            yield check, f"`{model.__name__}.py`", parameters, relation, bound, exact


def flaws():
    for model in MODELS:
        for variant, exact, bound in model.flaws():
            yield variant, f"`{model.__name__}.py`", bound, exact


def tables(cases, flaws):
    """Both tables as Markdown, by name."""
    games = ["| check | model | parameters | bound | exact value |", "| --- | --- | --- | --- | --- |"]
    for check, model, parameters, relation, bound, exact in cases:
        games.append(f"| {check} | {model} | {parameters} | {relation} {number(bound)} | {number(exact)} |")
    variants = ["| broken variant | model | bound of the page | exact value |", "| --- | --- | --- | --- |"]
    variants += [f"| {variant} | {model} | {number(bound)} | {number(exact)} |" for variant, model, bound, exact in flaws]
    return {"games": "\n".join(games), "variants": "\n".join(variants)}


def between(name, text):
    """Where a table stands in the page."""
    begin = text.index(BEGIN.format(name)) + len(BEGIN.format(name))
    return begin, text.index(END, begin)


def main():
    made = tables(list(cases()), list(flaws()))
    if sys.argv[1:] != ["--write"]:
        print("\n\n".join(made.values()))
        return
    text = PAGE.read_text()
    for name, table in made.items():
        begin, end = between(name, text)
        text = f"{text[:begin]}\n\n{table}\n\n{text[end:]}"
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
