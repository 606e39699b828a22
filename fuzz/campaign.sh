#!/bin/bash
# Runs every target of fuzzing at the same time as others, so many at once, and counts what came of it:
#     campaign.sh OUT SECONDS JOBS
# Beside this script lie the binary `fuzz` (or FUZZ names it) and `seeds`. Each target gets SECONDS of one core; OUT
# gets a corpus, a log and crashes of each, `counts` (target, executions, edges, features, inputs, bytes, crashes) and
# the same as a table of docs/assurance.md.
# A crash, a leak of memory or a run that takes too long does not end a target: it begins again with another seed.
set -u
out=$1 seconds=$2 jobs=$3
here=$(cd "$(dirname "$0")" && pwd)
FUZZ=${FUZZ:-$here/fuzz}
[ -x "$FUZZ" ] || xz -dk "$FUZZ.xz" || exit 1
[ -d "$here/lib" ] && export LD_LIBRARY_PATH=$here/lib
export FUZZ
mkdir -p "$out"
out=$(cd "$out" && pwd)
TACIT_FUZZ_PREPARE="$out/whole" "$FUZZ" || exit 1

one() {
    out=$1 seconds=$2 here=$3 name=$4 longest=$5
    folder=$out/$name
    mkdir -p "$folder/corpus" "$folder/crashes"
    end=$(($(date +%s) + seconds))
    # A campaign that is begun again in the same place goes on.
    round=$(find "$folder" -name 'log.*' | wc -l)
    last=$((round + 20))
    while :; do
        left=$((end - $(date +%s)))
        [ "$left" -gt 0 ] && [ "$round" -lt "$last" ] || break
        round=$((round + 1))
        words=$out/whole/$name.dict
        [ -s "$words" ] && words=-dict=$words || words=-verbosity=1
        # 6 GiB of addresses: what asks for more ends as a crash.
        (
            ulimit -v 6291456
            ulimit -c 0
            cd "$folder" && TACIT_FUZZ=$name exec "$FUZZ" corpus "$here/seeds/$name" "$out/whole/$name" \
                "$words" -max_len="$longest" -max_total_time="$left" -timeout=20 \
                -rss_limit_mb=4096 -artifact_prefix=crashes/ -print_final_stats=1 -seed="$((RANDOM + 1))" \
                -use_value_profile="${VALUE_PROFILE:-0}" -detect_leaks=0
        ) >"$folder/log.$round" 2>&1 </dev/null
        [ -s "$folder/log.$round" ] || break
    done
    # A round that ended by a crash prints no final count: its last line has one.
    awk -v name="$name" -v corpus="$(find "$folder/corpus" -type f | wc -l)" \
        -v bytes="$(du -sb "$folder/corpus" | cut -f1)" -v crashes="$(find "$folder/crashes" -type f | wc -l)" '
        function settle() { total += final > last ? final : last; final = last = 0 }
        FNR == 1 { settle() }
        /^#[0-9]+/ { n = substr($1, 2) + 0; if (n > last) last = n
            for (i = 1; i < NF; i++) { if ($i == "cov:" && $(i+1) > cov) cov = $(i+1); if ($i == "ft:" && $(i+1) > ft) ft = $(i+1) } }
        /^stat::number_of_executed_units:/ { final = $2 }
        END { settle(); printf "%s %d %d %d %d %d %d\n", name, total, cov, ft, corpus, bytes, crashes }
    ' "$folder"/log.* >"$folder/count"
}
export -f one
xargs -P "$jobs" -L 1 bash -c 'one "$0" "$@"' "$out" "$seconds" "$here" <"$out/whole/targets"
{
    echo "target executions edges features inputs bytes crashes"
    cat "$out"/*/count
    cat "$out"/*/count | awk '{ e += $2; c += $7 } END { print "all", e, "", "", "", "", c }'
} | tee "$out/counts"
{
    echo "| target | executions | edges | inputs | faults |"
    echo "| --- | --- | --- | --- | --- |"
    tail -n +2 "$out/counts" | awk '{ printf "| `%s` | %d | %d | %d | %d |\n", $1, $2, $3, $5, $7 }' | grep -v '`all`'
} >"$out/table.md"
# Of logs the end is enough.
for log in "$out"/*/log.*; do tail -n 60 "$log" >"$log.end" && mv "$log.end" "$log"; done
find "$out"/*/crashes -type f | grep . && exit 1
exit 0
