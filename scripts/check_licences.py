#!/usr/bin/env python3
"""Every crate in `Cargo.lock` has a licence that we accept: `cargo metadata` names them, no network is needed.

A licence expression passes if a choice through its `OR`s meets only accepted licences. Yanked versions and
advisories are not looked at. The exit code is 0 only if every crate passes.
"""

import json
import re
import subprocess
import sys

ACCEPTED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT",
    "Unicode-3.0",
}


def accepted(expression):
    """Whether an SPDX expression (older manifests write `/` for `OR`) can be met; ValueError if it is none."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def one():
        if not tokens:
            raise ValueError(f"ends too early: {expression}")
        token = tokens.pop(0)
        if token == "(":
            value = choice()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(f"a parenthesis stays open: {expression}")
            return value
        if token in (")", "AND", "OR", "WITH"):
            raise ValueError(f"a licence is missing before {token}: {expression}")
        if tokens[:1] == ["WITH"]:
            token = " ".join([token, *tokens[:2]])
            del tokens[:2]
        return token in ACCEPTED

    def both():
        value = one()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            value = one() and value
        return value

    def choice():
        value = both()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            value = both() or value
        return value

    value = choice()
    if tokens:
        raise ValueError(f"{tokens[0]} is too much: {expression}")
    return value


def faults(packages):
    """One line for each package of `cargo metadata` whose licence is missing, unreadable or not accepted."""
    found = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        try:
            if not package["license"]:
                found.append(f"{name}: names no licence")
            elif not accepted(package["license"]):
                found.append(f"{name}: {package['license']} is not accepted")
        except ValueError as error:
            found.append(f"{name}: {error}")
    return found


def main():
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    found = faults(packages)
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    print(f"{len(packages)} crates, {len(found)} with a licence that is not accepted")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
