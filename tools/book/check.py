#!/usr/bin/env python3
"""Checks the built book: check.py FOLDER.

Every link inside it leads to a page, and every anchor to a place there; nothing (script, style, font, picture)
is loaded from elsewhere. Ends with `N passed, N failed`.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from verdicts import told  # noqa: E402

# What a browser loads by itself, by the attribute that names it.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}

# What a style or a picture loads by an address outside the book.
LOADS = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"']|(?:href|src)=\")((?:https?:)?//[^\s\"')]+)")


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.places, self.links, self.loaded = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.places |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in LOADED and values.get(LOADED[tag]):
            self.loaded.append(values[LOADED[tag]])


def elsewhere(link):
    """Whether a link leaves the book."""
    return bool(urlsplit(link).scheme) or link.startswith("//")


def findings(folder):
    """(what, whether it is right) of every link, picture, script and style of the book."""
    # The page for a missing page links from the root of wherever the book is served.
    found = [path for path in sorted(folder.rglob("*.html")) if path.name != "404.html"]
    pages = {path: Page(path.read_text()) for path in found}
    checks = [("the book has pages", len(pages) > 1)]
    for path, page in pages.items():
        here = path.relative_to(folder)
        for link in page.loaded:
            there = not elsewhere(link) and (path.parent / unquote(urlsplit(link).path)).is_file()
            checks.append((f"{here} loads {link}", there or link.startswith("data:")))
        for link in page.links:
            if elsewhere(link):
                continue
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            there = target.is_file()
            if there and target in pages:
                there = unquote(parts.fragment) in pages[target].places
            checks.append((f"{here}: link to {link}", there))
    for style in sorted([*folder.rglob("*.css"), *folder.rglob("*.svg")]):
        found = LOADS.findall(style.read_text())
        checks.append((f"{style.relative_to(folder)} loads {', '.join(found) or 'nothing'}", not found))
    return checks


def main():
    checks = findings(Path(sys.argv[1]).resolve())
    return told(checks)


if __name__ == "__main__":
    sys.exit(main())
