#!/usr/bin/env python3
"""Every operation that writes, on a disk that fails at each of its calls: the table stands in docs/assurance.md."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import operations

if __name__ == "__main__":
    sys.exit(operations.main([]))
