#!/usr/bin/env bash
# scripts/plots.sh FILE.jsonl…: the report of these results and its plots into docs/plots, as SVG and, by a headless Chromium, as PNG.
set -euo pipefail
cd "$(dirname "$0")/.."
tacit=${TACIT:-target/release/tacit}
folder=docs/plots
[ $# -gt 0 ] || { echo "error: give files of results, such as benches/record/*.jsonl" >&2; exit 2; }
browser=
for name in "${CHROMIUM:-chromium}" chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then browser=$name; break; fi
done
mkdir -p "$folder"
"$tacit" bench report "$@" --output "$folder/report.html" --svg "$folder" --overwrite
chmod 644 "$folder"/*.svg
[ -n "$browser" ] || { echo "no Chromium here: the PNG files are left as they are" >&2; exit 0; }
for svg in "$folder"/*.svg; do
  # The picture's size stands in its view box; twice that for sharp screens.
  read -r width height < <(sed -n 's/.*viewBox="0 0 \([0-9]*\)[0-9.]* \([0-9]*\)[0-9.]*".*/\1 \2/p' "$svg") || true
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=2 \
    --window-size="$width,$height" --screenshot="${svg%.svg}.png" "file://$PWD/$svg" 2>/dev/null
done
