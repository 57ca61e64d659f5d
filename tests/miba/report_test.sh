#!/bin/bash
# strata-miba --report: the folder with results, Markdown and plots; progress; and going on with a run that was ended.
. "$STRATA_SOURCE/tests/miba/lib.sh" || exit 1
export TMPDIR=$work
# shellcheck disable=SC2054
some=(qp qp_connected cq latency mtu load inline "${quick[@]}" --op send --transport RC --values 8,64)
folder=$work/report

miba 0 "${some[@]}" --report "$folder"; err_has "report: $folder/report.md"
results=$folder/results.jsonl
lines 'd[0]["device"] == "soft0" and d[-1] == {"status": 0, "results": len(r)}' "$results"
for name in '## qp: Figure 4' '## mtu: Figure 10' 'Settings:.*`--samples 3`' '^\| qp_create \|  \|  \|  \| 64 \| [0-9.]* [nu]s' \
    '^\| Tearing down a connection \(destroy QP\) \| [0-9.]* [nu]s'; do
    check "the report has $name" grep -qE -- "$name" "$folder/report.md"
done
for f in 03 04 05 10 13; do check "figure$f.gp" test -s "$folder/figure$f.gp"; done
marked_load() { python3 -c "import json, sys
assert any(json.loads(x).get('status') == 'marked' for x in open(sys.argv[1]) if '\"load\"' in x)" "$results" 2>/dev/null; }
if marked_load; then check "the plot says that some are marked" grep -q "title 'Figure 13: .* (some are marked in report.md)'" "$folder/figure13.gp"; fi
check "each script plots its data" grep -q "'figure04.dat' index 1" "$folder/figure04.gp"
# Figure 10 has the paper's axes: bytes, and a line for each MTU, with its points in order.
check "a line for each MTU" test "$(grep -c '^# latency, mtu [0-9]*: bytes' "$folder/figure10.dat")" = 5
check "points by size" python3 -c "import sys
x = [float(line.split()[0]) for line in open(sys.argv[1]).read().split('\n\n\n')[0].splitlines() if line[0] != '#']
assert len(x) > 1 and x == sorted(x), x" "$folder/figure10.dat"
check "rates in bandwidth" grep -q '^# bandwidth, mtu 256: bytes, median, quartiles in MB/s' "$folder/figure10.dat"
# Results of a run that was cut are drawn, and it is said.
mkdir "$work/part"
head -n 5 "$results" >"$work/part/results.jsonl"
"$tool" --draw "$work/part" 2>"$work/err" || fail "--draw of a part" "$work/err"
check "the report of a part" grep -q 'The run ended early: the results have no last line' "$work/part/report.md"
sed '$s/}$/,"error":"the peer is lost: it has ended"}/' "$results" >"$work/part/results.jsonl"
"$tool" --draw "$work/part" 2>"$work/err" || fail "--draw of a run that lost its peer" "$work/err"
check "the report says why" grep -q 'The run ended early: the peer is lost: it has ended. ' "$work/part/report.md"
# Drawn again without a device, and elsewhere.
mkdir "$work/drawn"
cp "$results" "$work/drawn/"
"$tool" --draw "$work/drawn" 2>"$work/err" || fail "--draw" "$work/err"
check "the same report" cmp <(grep '^| ' "$folder/report.md") <(grep '^| ' "$work/drawn/report.md")
places() { grep -v '^#' "$1" | cut -d ' ' -f 1; }
check "the same points" cmp <(places "$folder/figure10.dat") <(places "$work/drawn/figure10.dat")
if command -v gnuplot >/dev/null; then
    for f in table1 figure04 figure05 figure10; do
        check "$f.png" test -s "$folder/$f.png"
        check "$f.svg" grep -q '</svg>' "$folder/$f.svg"
    done
else
    check "the report names scripts" grep -q 'gnuplot figure04.gp' "$folder/report.md"
fi

# Ended after a few results, in the middle of a line: what is there is not measured again, but for the last case.
head -n 6 "$results" >"$work/whole"
{ cat "$work/whole"; sed -n 7p "$results" | head -c 40; } >"$work/cut"
cp "$work/cut" "$results"
miba 0 "${some[@]}" --report "$folder" --resume
check "the first results are the old ones" cmp <(head -n 5 "$work/whole") <(head -n 5 "$results")
lines 'd[-1]["results"] == len(r)' "$results"
lines 'len({json.dumps([o[k] for k in ("test", "figure", "op", "transport", "variant", "value")] + [o.get("size")]) for o in r}) == len(r)' "$results"
lines 'any(o["test"] == "inline" for o in r)' "$results"
# One that ended within its first line has nothing.
head -c 40 "$results" >"$work/line"
miba 0 qp "${quick[@]}" --values 8 --json -o "$work/line" --resume
lines 'len(r) == 2 and d[-1]["status"] == 0' "$work/line"
# A case that failed is measured again; another device or other settings are refused.
sed -i '/"latency"/s/"status":"ok"/"status":"failed","reason":"x"/' "$results"
miba 0 "${some[@]}" --report "$folder" --resume
lines 'all(o["status"] != "failed" for o in r)' "$results"
miba 2 "${some[@]}" --samples 4 --report "$folder" --resume; err_has 'cannot be resumed'
check "and stay" test "$(wc -l <"$results")" -gt 10
miba 0 qp "${quick[@]}" --values 8 --report "$work/fresh" --resume
# Killed in the middle: a resumed run keeps what there was.
# shellcheck disable=SC2054
long=(latency --samples 1001 --time 300 --op send,write --transport RC --values 8,16,32,64)
soft_behind 60 "$tool" "${long[@]}" --report "$work/killed" 2>"$work/err"
pids=($!)
many() { [ "$(wc -l <"$1")" -ge 4 ]; }
check "some results" wait_until many "$work/killed/results.jsonl"
pkill -KILL -P "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
pids=()
head -n 3 "$work/killed/results.jsonl" >"$work/whole"
miba 0 "${long[@]}" --report "$work/killed" --resume
check "the results of the killed run" cmp "$work/whole" <(head -n 3 "$work/killed/results.jsonl")
lines 'len(r) == 8 and d[-1]["results"] == 8' "$work/killed/results.jsonl"

# The file of --output, too.
miba 0 qp cq "${quick[@]}" --values 8 --json -o "$work/lines"
head -n 4 "$work/lines" >"$work/cut"
cp "$work/cut" "$work/lines"
miba 0 qp cq "${quick[@]}" --values 8 --json -o "$work/lines" --resume
check "results of the file that was cut" cmp <(head -n 3 "$work/cut") <(head -n 3 "$work/lines")

# Mistakes.
miba 2 qp --resume; err_has '--resume goes on with what --report'
miba 2 qp --draw "$work/drawn"; err_has '--draw measures nothing'
mkdir "$work/empty"
miba 2 --draw "$work/empty"; err_has 'empty/results.jsonl: No such file'
{ sed '1s/"samples":"[0-9]*"/"samples":3/' "$folder/results.jsonl"; } >"$work/empty/results.jsonl"
miba 0 --draw "$work/empty"; err_has 'empty/report.md'
echo '{"figure": 1}' >"$work/empty/results.jsonl"
miba 2 --draw "$work/empty"; err_has "is no file of strata-miba's results"
miba 2 qp --report "$work/x" --json; err_has 'no --output, --json'
miba 1 qp "${quick[@]}" --report "$work/no/such/folder"; err_has 'no/such/folder: cannot be made: No such file'
# Progress comes after two seconds, and says how far it is. 1001 samples of this count take longer than --time allows a case.
miba 0 latency both_ways "${quick[@]}" --time 800 --samples 1001 --count 50000 --op send --transport RC --values 8,32 --progress
err_has 'of 4 cases, now (latency|both_ways) send RC size .*; about [0-9]* s to go'
# Also within one case that is longer.
miba 0 latency "${quick[@]}" --time 2500 --samples 1001 --count 50000 --op send --transport RC --values 8 --progress
err_has '0 of 1 cases, now latency send RC size 8$'
finish
