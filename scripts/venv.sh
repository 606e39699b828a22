#!/usr/bin/env bash
# scripts/venv.sh DIR PYTHON [MODULE PIP-ARGUMENT…]: a virtual environment in DIR, made once: with numpy, or with
# what the arguments of pip name, in which MODULE can be imported. Where it cannot be made there is a warning.
set -uo pipefail
dir=$1 python=$2
shift 2
module=${1:-numpy}
if [ $# -gt 0 ]; then shift; else set -- numpy; fi
if "$dir/bin/python" -c "import $module" 2>/dev/null; then exit 0; fi
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
if ! "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; then
  echo "WARNING: $* could not be installed; what needs it is left out" >&2
  rm -rf "$dir"
fi
exit 0
