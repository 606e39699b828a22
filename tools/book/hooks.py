"""What the book's builder does beyond its configuration.

Some pages stand outside `docs/`, where people look for them first: they become pages too. A relative link to
one of them, or from it, leads on inside the book; a link to any other file of the repository is left as text,
as the built book stands alone. The reference of the Python package is made of its sources.
"""

import os
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OUTSIDE = ["SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "benches/record/*.md"]
REFERENCE = "python-reference.md"
FENCED = re.compile(r"(?ms)(^```.*?^```$)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def outside():
    """The pages outside `docs/`, by their path from the root, which is their place in the book too."""
    found = [path for pattern in OUTSIDE for path in sorted(ROOT.glob(pattern))]
    return {path.relative_to(ROOT).as_posix(): path for path in found}


def on_files(files, config):
    for name, path in outside().items():
        files.append(File.generated(config, name, content=path.read_text()))
    files.append(File.generated(config, REFERENCE, content=reference.page()))
    return files


def in_the_book(link, page):
    """The link as it leads on inside the book from `page` (its place there), or None for no page of it."""
    target, _, anchor = link.partition("#")
    home = ROOT if page in outside() else DOCS
    path = Path(os.path.normpath((home / page).parent / target))
    if path.is_relative_to(DOCS):
        place = path.relative_to(DOCS).as_posix()
    elif path.is_relative_to(ROOT) and path.relative_to(ROOT).as_posix() in outside():
        place = path.relative_to(ROOT).as_posix()
    elif path.is_relative_to(ROOT) and path.exists():
        return None
    else:
        # Nowhere: left as it is, for the builder to complain of.
        return link
    place = os.path.relpath(place, Path(page).parent)
    return place + (f"#{anchor}" if anchor else "")


def on_page_markdown(markdown, page, config, files):
    def rewritten(found):
        mark, text, link = found.groups()
        if "://" in link or link.startswith(("#", "mailto:")):
            return found[0]
        place = in_the_book(link, page.file.src_uri)
        return f"{mark}[{text}]({place})" if place else text

    # Links may run over a line's end; fenced blocks stay as they are.
    parts = FENCED.split(markdown)
    return "".join(part if at % 2 else LINK.sub(rewritten, part) for at, part in enumerate(parts))
