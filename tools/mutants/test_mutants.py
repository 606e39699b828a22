#!/usr/bin/env python3
"""A few damaged files of every format; `long_mutants.py` reads as many as a release does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import mutants

if __name__ == "__main__":
    sys.argv[1:] = ["--count", "203", "--seed", "1000000"]
    sys.exit(mutants.main())
