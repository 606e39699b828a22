#!/usr/bin/env bash
# scripts/plots.sh FILE.jsonl…: the plots of README.md and the book out of these results into docs/plots, as SVG and, by a
# headless Chromium, as PNG. They are plots of `tacit bench report`.
set -euo pipefail
cd "$(dirname "$0")/.."
tacit=${TACIT:-target/release/tacit}
folder=docs/plots
[ $# -gt 0 ] || { echo "error: give files of results, such as benches/record/*.jsonl" >&2; exit 2; }
browser=
for name in "${CHROMIUM:-chromium}" chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then browser=$name; break; fi
done
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$tacit" bench report "$@" --output "$made/report.html" --svg "$made"
for plot in time-by-bandwidth cost-by-size; do
  [ -f "$made/$plot.svg" ] || { echo "error: these results give nothing for $plot" >&2; exit 2; }
  install -D -m 644 "$made/$plot.svg" "$folder/$plot.svg"
done
[ -n "$browser" ] || { echo "no Chromium here: the PNG files are left as they are" >&2; exit 0; }
for svg in "$folder"/*.svg; do
  # A picture is drawn 640 wide at most; its view box says how high it then is. Twice that for sharp screens.
  read -r width height < <(sed -n 's/.*viewBox="0 0 \([0-9]*\) \([0-9]*\)".*/\1 \2/p' "$svg")
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=2 \
    --window-size="640,$((height * 640 / width))" --screenshot="${svg%.svg}.png" "file://$PWD/$svg" 2>/dev/null
done
