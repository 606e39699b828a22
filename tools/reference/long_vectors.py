#!/usr/bin/env python3
"""All vectors of docs/wire, computed again: those too that the short tests leave out.

python3 tools/reference/long_vectors.py
"""

import sys

import with_numpy

with_numpy.ensure()

import honest  # noqa: E402
import vectors  # noqa: E402


def main():
    wrong = [name for name, part in vectors.everything().items() if honest.stored().get(name) != part]
    print("".join(f"FAILED {name}\n" for name in wrong), end="")
    print(f"{int(not wrong)} passed, {int(bool(wrong))} failed")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
