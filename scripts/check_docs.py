#!/usr/bin/env python3
"""Checks the documents: every dependency has its line, every relative link leads somewhere, no stray words.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def dependencies():
    """The names of every outside crate that a manifest of the workspace asks for."""
    names = set()
    for manifest in [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")]:
        content = tomllib.loads(manifest.read_text())
        tables = [content.get("workspace", {}), content, *content.get("target", {}).values()]
        for table in tables:
            for section in ("dependencies", "dev-dependencies", "build-dependencies"):
                names |= {n for n in table.get(section, {}) if not n.startswith("tacit")}
    return sorted(names)


def markdown():
    """Every document of the repository."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return sorted(found)


def main():
    checks = []
    listed = (ROOT / "docs" / "dependencies.md").read_text()
    for name in dependencies():
        checks.append((f"docs/dependencies.md names {name}", f"`{name}`" in listed))
    for document in markdown():
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text()):
            if "://" not in link and not link.startswith("mailto:"):
                there = (document.parent / link).exists()
                checks.append((f"{document.relative_to(ROOT)}: link to {link}", there))
    passed = sum(ok for _, ok in checks)
    for what, ok in checks:
        if not ok:
            print(f"FAILED {what}")
    print(f"{passed} passed, {len(checks) - passed} failed")
    return 0 if passed and passed == len(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
