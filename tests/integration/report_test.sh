#!/usr/bin/env bash
# What a job says about itself: strata-run's reports, and those of its ranks.
# starts first
. "$STRATA_SOURCE/tests/integration/lib.sh"
traffic=$STRATA_BUILD/tests/programs/traffic

# --- how each peer was reached, and what went both ways -------------------------------------------------------------
# Rank 0 sends to nobody but by the barriers, which are empty; ranks 1 and 2 send it 10 messages of 100 bytes three times.
expect_status 0 strata-run -n 3 --report-transports "$traffic" incast 100 10 2
err_has ':0\]: peer 1 on .*: sent [0-9]* messages*, 0 bytes; received [0-9]* messages, 3000 bytes by sm$'
err_has ':2\]: peer 0 on .*: sent [0-9]* messages, 3000 bytes; received [0-9]* messages*, 0 bytes by sm$'
err_has ':0\]: all 2 peers by sm: sent [0-9]* messages, 0 bytes; received [0-9]* messages, 6000 bytes$'
err_has ':1\]: peer 0 on .*: path 1 of 1 by sm, '
# What one rank has sent the other has received; a rank that only receives has a row for each of its peers.
expect_status 0 strata-run -n 4 --report-transports=json "$traffic" incast 70000 3 2
check "the ranks' reports agree" python3 - "$work/err" <<'PY'
import json, sys
ranks = {r["rank"]: r for r in map(json.loads, (l for l in open(sys.argv[1]) if l.startswith("{")))}
assert sorted(ranks) == [0, 1, 2, 3], ranks.keys()
cell = {(r, p["rank"]): p for r in ranks for p in ranks[r]["peers"]}
for (a, b), p in cell.items():
    q = cell[(b, a)]
    assert p["messages_sent"] == q["messages_received"] and p["bytes_sent"] == q["bytes_received"], (a, b, p, q)
    assert p["by"] == "sm"
assert [cell[(0, r)]["bytes_received"] for r in (1, 2, 3)] == [630000] * 3
assert ranks[0]["traffic"]["sm"]["bytes_received"] == 3 * 630000 and ranks[0]["traffic"]["sm"]["peers"] == 3
PY

# --- one report of the whole job, at its end ------------------------------------------------------------------------
reports=(--report-transports=matrix --report-counters --report-memory)
expect_status 0 strata-run -n 3 "${reports[@]}" "$traffic" incast 100 10 2
err_has '^strata-run: messages/bytes from the rank of the row to the rank of the column, at the end$'
err_has '^ *0 *\. *[0-9]*/0 *[0-9]*/0$'
err_has '^ *1 *[0-9]*/3000 *\. *\.$'
err_has '^strata-run: counters of 3 ranks, at the end$'
err_has '^  pml_ob1_messages_sent, messages  *[0-9]*  *[0-9]* ([0-2])  *[0-9]* ([0-2])   [0-9]* [0-9]* [0-9]*$'
err_has '^  and [0-9]* more that are 0 on every rank$'
err_has "^  all of Strata's, sum  *[0-9]*  *[0-9]* ([0-2])"
err_has '^  btl_sm: shared memory, shared '
check "the ranks print nothing of their own" test "$(grep -c '^strata\[' "$work/err")" = 0
no_files

expect_status 0 strata-run -n 3 --report-transports=dot --report-counters=json --report-memory=json --report-file "$work/report" \
    "$traffic" incast 100 10 2
check "nothing of it is on standard error" test ! -s "$work/err"
check "the report in a file" python3 - "$work/report" <<'PY'
import json, re, sys
text = open(sys.argv[1]).read()
graph, rest = re.match(r"(digraph job \{\n.*?\n\}\n)(.*)", text, re.S).groups()
edges = {(int(a), int(b)): (int(m), int(n), by) for a, b, m, n, by in
         re.findall(r'^  (\d+) -> (\d+) \[label="(\d+) messages\\n(\d+) bytes\\n(\w+)"\];$', graph, re.M)}
assert sorted(edges) == [(0, 1), (0, 2), (1, 0), (2, 0)], edges
assert edges[(1, 0)][1:] == (3000, "sm") and edges[(0, 1)][1] == 0
counters, memory = map(json.loads, rest.splitlines())
for report, name in (counters, "counters"), (memory, "memory"):
    assert (report["report"], report["when"], report["ranks"], report["missing"]) == (name, "end", 3, [])
    for row in report["rows"]:
        values = [v for v in row["by_rank"] if v is not None]
        assert len(row["by_rank"]) == 3 and values, row
        assert (row["sum"], row["min"], row["max"]) == (sum(values), min(values), max(values)), row
        assert row["by_rank"][row["min_rank"]] == row["min"] and row["by_rank"][row["max_rank"]] == row["max"], row
row = {r["name"]: r for r in counters["rows"]}
assert row["pml_ob1_messages_sent"]["sum"] == row["pml_ob1_messages_received"]["sum"] == sum(e[0] for e in edges.values())
assert row["pml_ob1_messages_sent"]["by_rank"][1] == edges[(1, 0)][0]
row = {r["name"]: r for r in memory["rows"]}
total = row.pop("all of Strata's")
assert total["sum"] == sum(r["sum"] for r in row.values() if r["kind"] in ("private", "shared"))
# The kernel's figures close: private = before strata_init + libraries + free in malloc + stack + Strata's own + the rest.
process = {n.split(": ")[1]: r["by_rank"] for n, r in row.items() if r["kind"] == "of the process"}
for i in range(3):
    own = sum(r["by_rank"][i] or 0 for r in row.values() if r["kind"] == "private")
    rest = process["not accounted for"][i] - process["accounted twice"][i]
    assert process["private"][i] == process["before strata_init"][i] + process["libraries"][i] + process["free in malloc"][i] + process["stack"][i] + own + rest, (i, process, own)
    assert process["page tables"][i] > 0 and process["proportional"][i] > 0 and process["device mappings"][i] == 0
    assert row["peers with contact"]["by_rank"][i] == (2 if i == 0 else 1), row["peers with contact"]
assert all(r["most"] >= r["max"] for r in row.values() if r["kind"] in ("private", "shared", "of the process"))
PY

# A rank that ends without strata_finalize leaves no record.
expect_status 0 strata-run -n 2 --report-counters true
err_has '^strata-run: no report from ranks 0, 1: '
# Ranks of a job inside of it are no ranks of it.
expect_status 0 strata-run -n 1 --report-counters strata-run -n 2 "$traffic" incast 100 10 2
err_has '^strata-run: no report from rank 0: '
expect_status 2 strata-run -n 2 --report-counters=xml true
err_has 'must be text or json'
(cd "$work" && mkdir -p elsewhere && exec strata-run -n 1 --wdir elsewhere --report-counters --report-file relative true)
check "a report's file is relative to our folder, not to that of --wdir" test -s "$work/relative"
expect_status 1 strata-run -n 2 --report-memory --report-file "$work/no/such/folder" true
err_has 'report-file .*No such file'

# --- while the job runs, on SIGUSR1 ---------------------------------------------------------------------------------
begin() { # MODE RANKS OPTIONS...: a job that runs until $work/end exists
    rm -f "$work/end" "$work/out" "$work/err" # the "ready" of the job before would be taken for this one's
    strata-run -n "$2" --timeout "$job_limit" "${@:3}" "$STRATA_BUILD/tests/programs/reporting" "$1" "$work/end" \
        >"$work/out" 2>"$work/err" </dev/null &
    job=$!
    check "$1: the ranks are under way" wait_until file_has "$work/out" ready
}
end() {
    touch "$work/end"
    wait "$job"
    check "the job ends well" test $? = 0
    no_files
}
# Ranks that send without a pause, and ranks that sleep inside Strata, answer. One that computes is named. strata-run waits for answers
# for two seconds, which a rank of a busy machine may miss: such a report is asked for again.
begin busy 2 --report-counters --report-memory
for asked in $(seq 30); do
    missing=$(grep -c 'no report' "$work/err")
    kill -USR1 "$job"
    check "busy: report $asked comes" wait_until lines_are "$work/err" "^strata-run: memory .*while the job runs" "$asked"
    [ "$(grep -c 'no report' "$work/err")" != "$missing" ] || break
done
check "busy: everybody has answered" test "$(grep -c 'no report' "$work/err")" = "$missing"
end
err_has '^strata-run: memory .*at the end'
answers() { # MODE
    begin "$1" 3 --report-counters --report-transports=matrix
    asked=0
    until [ "$asked" = 30 ] || grep -q '^strata-run: no report from rank 0: no call' "$work/err"; do
        kill -USR1 "$job"
        asked=$((asked + 1))
        check "$1: report $asked comes" wait_until lines_are "$work/err" "^strata-run: counters .*while the job runs" "$asked"
    done
    err_has '^strata-run: no report from rank 0: no call into Strata'
    # What rank 0 received is known from those that sent it.
    err_has '^ *1 1/[0-9]* *\. *\.$'
    err_has '^  pml_ob1_messages_sent, messages  *2  *1 (1)  *1 (1)   - 1 1$'
    kill -USR1 "$job"
    check "$1: another report comes" wait_until lines_are "$work/err" "^strata-run: counters .*while the job runs" $((asked + 1))
    end
    err_has '^  pml_ob1_messages_sent, messages  *4 '
}
# Two jobs side by side, in folders of their own: both wait for a rank that does not answer.
pids=()
for mode in wait threads; do
    (
        work=$work/$mode TMPDIR=$work/$mode/tmp n_checks=0 n_failed=0
        mkdir -p "$TMPDIR"
        answers "$mode"
        finish
    ) &
    pids+=($!)
done
for pid in "${pids[@]}"; do check "the reports of a job that goes on" wait "$pid"; done
# Without reports the signal is the ranks'.
expect_status 138 strata-run -n 1 sh -c 'kill -USR1 $PPID; sleep 100'

finish
