#!/usr/bin/env python3
"""Checks every crate that `Cargo.lock` names: its licence, its origin, and that it was not withdrawn.

    scripts/check_licences.py [--fresh]

--fresh  asks the registry anew what was withdrawn, and looks at the fuzzer's own crates too (`fuzz/`); without it,
         what cargo last heard of the registry counts

A licence must be one of `ALLOWED`, or offer one (`OR`, or the older `/`); all parts of an `AND` must be; a crate of
`BY_NAME` may have another. A crate comes from the registry or lies in the workspace. A yanked release is a fault.

Ends with `N passed, N failed`; the exit code is 0 only if nothing failed.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause",
    "CC0-1.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip
# Crates under another licence, each with the reason in docs/dependencies.md.
BY_NAME = {
    "libbz2-rs-sys": "bzip2-1.0.6", "libfuzzer-sys": "(MIT OR Apache-2.0) AND NCSA",
    "webpki-root-certs": "CDLA-Permissive-2.0",
}  # fmt: skip


def admits(licence):
    """Whether an SPDX expression can be met by `ALLOWED` alone. An expression that makes no sense is not."""
    words = re.findall(r"[()]|[^\s()]+", (licence or "").replace("/", " OR "))
    at = 0

    def word():
        return words[at] if at < len(words) else None

    def choice():
        nonlocal at
        found = every()
        while word() == "OR":
            at += 1
            found = every() or found
        return found

    def every():
        nonlocal at
        found = one()
        while word() == "AND":
            at += 1
            found = one() and found
        return found

    def one():
        nonlocal at
        if word() == "(":
            at += 1
            found = choice()
            if word() != ")":
                raise ValueError
            at += 1
            return found
        name = word()
        if name in (None, ")", "AND", "OR", "WITH"):
            raise ValueError
        at += 1
        if word() == "WITH":
            if at + 1 >= len(words):
                raise ValueError
            name += " WITH " + words[at + 1]
            at += 2
        return name in ALLOWED

    try:
        return choice() and at == len(words)
    except ValueError:
        return False


def withdrawn(cache):
    """The releases that one file of cargo's index cache says are yanked: lines of JSON between zero bytes."""
    found = set()
    for part in cache.split(b"\0"):
        if part.startswith(b"{"):
            release = json.loads(part)
            if release.get("yanked"):
                found.add(release["vers"])
    return found


def index_path(name):
    """Where an index keeps a crate."""
    name = name.lower()
    if len(name) < 4:
        return f"{len(name)}/{name}" if len(name) < 3 else f"3/{name[0]}/{name}"
    return f"{name[:2]}/{name[2:4]}/{name}"


def faults(packages, caches):
    """What is wrong with the packages, by kind; `caches` are the folders of cargo's index caches."""
    refused = [p for p in packages if not admits(p["license"]) and BY_NAME.get(p["name"]) != p["license"]]
    licences = [f"{p['name']} {p['version']}: {p['license']}" for p in refused]
    outside = [p for p in packages if p["source"]]
    origins = [f"{p['name']}: {p['source']}" for p in outside if p["source"] != REGISTRY]
    yanked, unknown = [], []
    for package in outside:
        files = [cache / index_path(package["name"]) for cache in caches]
        files = [file for file in files if file.is_file()]
        if not files:
            unknown.append(f"{package['name']}: cargo never heard of it; run with --fresh")
        elif any(package["version"] in withdrawn(file.read_bytes()) for file in files):
            yanked.append(f"{package['name']} {package['version']}")
    return {"licences": licences, "origins": origins, "not withdrawn": yanked + unknown}


def main():
    cargo = os.environ.get("CARGO", "cargo")
    if "--fresh" in sys.argv[1:]:
        subprocess.run([cargo, "update", "--dry-run", "--quiet"], cwd=ROOT, check=True)
    command = [cargo, "metadata", "--format-version", "1", "--locked", "--all-features"]
    folders = [ROOT, ROOT / "fuzz"] if "--fresh" in sys.argv[1:] else [ROOT]
    packages = []
    for folder in folders:
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
        packages += json.loads(done.stdout)["packages"]
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    found = faults(packages, sorted(home.glob("registry/index/*/.cache")))
    for what, lines in found.items():
        print(f"{what}: " + (f"{len(lines)} faults" if lines else "ok"))
        for line in lines:
            print(f"  {line}")
    failed = sum(1 for lines in found.values() if lines)
    print(f"{len(found) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
