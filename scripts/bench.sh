#!/usr/bin/env bash
# scripts/bench.sh [OPTIONS]: the figures of the README, one JSON object a line; options go to every benchmark.
set -euo pipefail
cd "$(dirname "$0")/.."
tacit=${TACIT:-target/release/tacit}
for protocol in iknp kos; do
  for kind in cot rot; do
    "$tacit" --json bench ot --protocol "$protocol" --kind "$kind" "$@"
  done
done
"$tacit" --json bench ot --protocol kos --kind cot --tls "$@"
for protocol in co15 csw20 mr19 mrr21 pvw08; do
  "$tacit" --json bench base-ot --protocol "$protocol" "$@"
done
for count in 2048 1048576; do
  "$tacit" --json bench psi --count "$count" "$@"
done
"$tacit" --json bench psi --security semi-honest "$@"
"$tacit" --json bench net "$@"
"$tacit" --json bench net --tls "$@"
