#!/usr/bin/env python3
"""Wraps the documents' prose at 110 characters: wrap_docs.py FILE…

Paragraphs and list items with a longer line are filled anew; everything else (tables, fenced blocks, headings)
stays as it is. `scripts/check_docs.py` finds long lines by `long_lines`.
"""

import re
import sys
from pathlib import Path

WIDTH = 110
ITEM = re.compile(r"(\s*)((?:[-*+]|\d+\.)\s+|> )?(.*)")
# What must not be parted: a mark that pages do not show, code, the end of a link, and what has no space in it.
TOKEN = re.compile(r"(?:<!--.*?-->|`[^`]*`|\]\([^)]*\)|[^\s`])+")
MARK = re.compile(r"<!--.*?-->")
# What would begin something else at the beginning of a line: it stays with the word before.
BEGINS = re.compile(r"(?:[-*+>|]|#+|\d+[.)])$|[|:]")


def width(line):
    """How wide a line is where marks do not show."""
    return len(MARK.sub("", line))


def kinds(text):
    """(line, whether it is prose) of every line of a document."""
    fenced, found = False, []
    for line in text.split("\n"):
        bare = line.strip()
        fence = bare.startswith("```")
        aside = fenced or fence or not bare or bare.startswith(("|", "#", "<", "![")) or line.startswith("    ")
        fenced ^= fence
        found.append((line, not aside))
    return found


def long_lines(text):
    """The numbers of the lines of prose that are too long and have a place to part them."""
    result = []
    for number, (line, prose) in enumerate(kinds(text), 1):
        if prose and width(line) > WIDTH and len(TOKEN.findall(line)) > 1:
            result.append(number)
    return result


def fill(lines):
    """One paragraph or list item, filled."""
    indent, mark, _ = ITEM.match(lines[0]).groups()
    mark = mark or ""
    rest = indent + ("> " if mark == "> " else " " * len(mark))
    text = " ".join(line.strip().removeprefix("> ") for line in lines)
    words = []
    for word in TOKEN.findall(text if mark == "> " else text[len(mark):]):
        if words and BEGINS.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    result, line = [], indent + mark
    for word in words:
        empty = line in (indent + mark, rest)
        if not empty and width(line) + 1 + width(word) > WIDTH:
            result.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
    return [*result, line]


def wrap(text):
    """The document with every paragraph filled that has too long a line."""
    result, paragraph = [], []

    def flush():
        too_long = any(width(line) > WIDTH for line in paragraph)
        result.extend(fill(paragraph) if too_long else paragraph)
        paragraph.clear()

    for line, prose in kinds(text):
        quoted = line.startswith("> ") and paragraph and paragraph[0].startswith("> ")
        if not prose or (ITEM.match(line)[2] and not quoted):
            flush()
        if prose:
            paragraph.append(line)
        else:
            result.append(line)
    flush()
    return "\n".join(result)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(wrap(path.read_text()))
