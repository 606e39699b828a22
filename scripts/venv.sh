#!/usr/bin/env bash
# scripts/venv.sh DIR PYTHON: a virtual environment with numpy in DIR, made once.
set -uo pipefail
dir=$1 python=$2
if "$dir/bin/python" -c 'import numpy' 2>/dev/null; then exit 0; fi
rm -rf "$dir"
if ! "$python" -m venv "$dir" >/dev/null 2>&1; then
  rm -rf "$dir"
  # Debian keeps venv in a package of its own.
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq >/dev/null 2>&1
    apt-get install -y -qq python3-venv >/dev/null 2>&1
  fi
  "$python" -m venv "$dir" >/dev/null 2>&1
fi
if ! "$dir/bin/python" -m pip install --quiet --disable-pip-version-check numpy; then
  echo "WARNING: numpy could not be installed; the .npz files are checked by the Rust reader alone" >&2
  rm -rf "$dir"
fi
exit 0
