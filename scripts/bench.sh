#!/usr/bin/env bash
# scripts/bench.sh [FOLDER]: every figure that the project names, in some twenty-five minutes, on a quiet machine.
#
# Writes FOLDER/MACHINE.jsonl and FOLDER/MACHINE-papers.jsonl (FOLDER: benches/record), MACHINE being the kind of machine. What stood there
# before is compared with. A benchmark that fails is named and missing in the files, and the script ends with 1 after the others.
set -uo pipefail
cd "$(dirname "$0")/.."
tacit=${TACIT:-target/release/tacit}
folder=${1:-benches/record}
new=$(mktemp) papers=$(mktemp)
trap 'rm -f "$new" "$papers"' EXIT
failed=()

bench() {
  "$tacit" --json bench "$@" >>"$new" || failed+=("bench $*")
}

[ -x "$tacit" ] || { echo "error: $tacit is not there; build it by cargo build --release -p tacit-cli" >&2; exit 1; }
mkdir -p "$folder" || exit 1
bench limits --repeat 5
machine=$(sed -n 's/.*"machine":"\([^"]*\)".*/\1/p' "$new" | head -1)
[ -n "$machine" ] || { echo "error: no result; see above" >&2; exit 1; }

# Throughput, setup apart.
for protocol in iknp kos; do
  for kind in cot rot ot; do bench ot --protocol "$protocol" --kind "$kind"; done
done
bench ot --protocol kos --tls
bench ot --protocol kos --both-ways
for set in a b c d e; do bench ot --protocol ferret --set "$set" --count 10000000; done
bench ot --protocol ferret --set d --security semi-honest --count 10000000
bench ot --protocol ferret --set d --kind rot --count 10000000
bench ot --protocol ferret --set d --count 10000000 --tls
bench ot --protocol ferret-uni --count 10000000 --repeat 3
# Whole jobs by size.
for count in 10000 100000 1000000 10000000; do
  for protocol in kos ferret "silent --code linear"; do
    # shellcheck disable=SC2086
    bench ot --protocol $protocol --kind rot --fresh --count "$count" --repeat 3
  done
  bench ot --protocol iknp --kind rot --fresh --count "$count" --repeat 3
done
for count in 10000 100000 1000000; do
  bench ot --protocol silent --code quasi-cyclic --kind rot --fresh --count "$count" --repeat 3
done
bench ot --protocol silent --code quasi-cyclic --kind rot --fresh --count 10000000 --repeat 1
# Whole jobs by link.
for rate in 10 50 100 500 1000 5000; do
  for protocol in kos ferret ferret-uni "silent --code linear"; do
    # shellcheck disable=SC2086
    bench ot --protocol $protocol --kind rot --fresh --count 1000000 --repeat 1 --link "$rate/5"
  done
done
for protocol in co15 csw20 mr19 mrr21 pvw08 bdgm19 roted; do bench base-ot --protocol "$protocol" --repeat 15; done
for protocol in paxos vole; do
  for count in 2048 65536 1048576; do
    bench psi --protocol "$protocol" --count "$count"
    bench psi --protocol "$protocol" --count "$count" --security semi-honest
  done
done
bench garble independent --repeat 7
bench garble aes128 --repeat 7
bench garble aes128 --copies 40 --repeat 7
for function in add32 aes128 sha256; do
  bench eval "$function" --protocol wmk17 --security malicious
  bench eval "$function" --protocol wmk17 --security malicious --halves
done
for function in add32 aes128 sha256; do
  bench eval "$function" --protocol authenticated --security malicious --repeat 15
done
for link in lan wan; do
  for function in aes128 sha256; do
    for protocol in wmk17 authenticated; do
      bench eval "$function" --protocol "$protocol" --security malicious --link "$link" --repeat 3
    done
  done
done
# A million AND gates.
for link in loopback lan 100/10 100/20 wan; do
  for protocol in wmk17 authenticated; do
    bench eval 128/128/128/1000000 --protocol "$protocol" --security malicious --link "$link" --repeat 1
  done
done
for link in loopback wan; do
  bench eval aes128 --protocol authenticated --security malicious --rows 100 --link "$link" --repeat 3
done
bench psi --reveal count --count 4096 --security malicious --repeat 1
bench psi --reveal count --count 4096 --security malicious --repeat 1
bench eval aes128 --protocol yao --security semi-honest
bench eval aes128 --protocol yao --security semi-honest --rows 1000
# What the planner's picks cost over the best candidates.
bench planner
bench net --count 268435456
bench net --count 268435456 --tls
"$tacit" --json bench paper all --quick >"$papers" || failed+=("bench paper all --quick")

for kind in "" -papers; do
  from=$new
  [ -z "$kind" ] || from=$papers
  to=$folder/$machine$kind.jsonl
  if [ -s "$to" ]; then
    echo "against $to, ratio of new to old:"
    "$tacit" bench compare "$to" "$from" || true
  fi
  cp "$from" "$to" || failed+=("cp $to")
done
echo "written: $folder/$machine.jsonl and $folder/$machine-papers.jsonl"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
