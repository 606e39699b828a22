#!/usr/bin/env python3
"""The second peer against the command, in both roles, honest and cheating; and the vectors of docs/wire.

    python3 tools/reference/test_reference.py [NAME...]

The command is `TACIT`, or target/debug/tacit; numpy comes from `make venv`. Ends with `N passed, N failed`.
"""

import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

import with_numpy

with_numpy.ensure()

import cheaters  # noqa: E402
import command  # noqa: E402
import honest  # noqa: E402

PROCESSES = 2


def tests():
    """All tests, by name; the longest ones first."""
    found = {
        name: test for module in (cheaters, honest) for name, test in vars(module).items() if name.startswith("test_")
    }
    return dict(sorted(found.items(), key=lambda item: -getattr(item[1], "seconds", 0)))


def run(name):
    """What went wrong, or nothing; and the seconds."""
    begin, wrong = time.monotonic(), ""
    try:
        tests()[name]()
    except Exception:  # noqa: BLE001
        wrong = traceback.format_exc()
    return wrong, time.monotonic() - begin


def main():
    command.command()
    names = [name for name in tests() if not sys.argv[1:] or name in sys.argv[1:]]
    failed = 0
    with ProcessPoolExecutor(PROCESSES) as pool:
        for name, (wrong, seconds) in zip(names, pool.map(run, names)):
            failed += bool(wrong)
            print(f"{'FAILED' if wrong else 'passed'} {name} ({seconds:.1f} s)\n{wrong}", end="", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return int(failed > 0 or not names)


if __name__ == "__main__":
    sys.exit(main())
