#!/usr/bin/env python3
"""Some operations on a disk that fails, at some of their calls; `long_disk.py` has all of both."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import operations

SOME = ["keygen", "psi payload", "pool used by its sender", "tags rotated", "nisc ask", "serve", "request"]

if __name__ == "__main__":
    sys.exit(operations.main(["--step", "17", *(word for name in SOME for word in ("--only", name))]))
