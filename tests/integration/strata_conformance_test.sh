#!/bin/bash
# strata-conformance as a tool: lists, selects, JSON, exit statuses; a transport that fails is named with case and reason. That the
# cases pass over each transport is tests/conformance/processes_test.sh.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tool=strata-conformance
lines() { # PYTHON-EXPRESSION of d, the list of objects on stdout
    check "JSON: $1" python3 -c "import json, sys
d = [json.loads(line) for line in open(sys.argv[1])]
assert $1, d" "$work/out"
}

expect_status 0 $tool --help; out_has "Exit status: 0"
expect_status 0 $tool --version; out_has "strata-conformance (Strata)"
# --list runs nothing, and has all three parts.
expect_status 0 $tool --list
for name in transport/am_sizes clients/draining notify/from_several messages/basic/; do out_has "^$name"; done
out_has "^clients/peer_fails .* 3 ranks, threads$"
expect_status 0 $tool --list --only am_sizes --only clients/draining
check "two cases" test "$(wc -l <"$work/out")" = 2
expect_status 0 $tool --list --json
lines 'len(d) > 70 and all(c["ranks"] >= 1 for c in d)'
lines 'any(c["case"] == "transport/am_incast" and c["ranks"] == 4 and c["processes"] for c in d)'

# Ranks are threads without a launcher, and with --threads.
expect_status 0 $tool --mca btl self,sm --only transport/am_sizes --only messages/basic/short_message
out_has "^passed   transport/am_sizes over sm$"
out_has "^2 cases passed, 0 failed, 0 left out; ranks: threads$"
expect_status 0 $tool --mca btl self --only transport/empty --only messages/matching --json
lines 'd[-1]["passed"] >= 1 and d[-1]["failed"] == 0 and d[-1]["ranks"] == "threads" and d[-1]["status"] == 0'
lines 'd[0] == {"case": "transport/empty", "result": "passed", "transport": "self"}'
lines 'any(c.get("reason") == "no transport reaches another rank" for c in d)'
expect_status 0 strata-run --timeout "$job_limit" -n 1 $tool --threads --mca btl self,sm --only clients/peer_fails
out_has "^passed   clients/peer_fails$"

# Ranks are processes under strata-run; only one of them speaks.
expect_status 0 strata-run --timeout "$job_limit" -n 2 $tool --mca btl self,sm --only transport/empty --only transport/am_incast --json
lines 'len(d) == 3 and d[-1]["passed"] == 1 and d[-1]["left_out"] == 1 and d[-1]["ranks"] == "2 processes"'
lines 'd[0] == {"case": "transport/am_incast", "result": "left out", "reason": "for 4 ranks"}'

# Nothing ran.
expect_status 77 $tool --mca btl self,sm --only no-such-case
expect_status 77 strata-run --timeout "$job_limit" -n 2 $tool --mca btl self,sm --only clients/peer_fails
out_has "its ranks must be threads"
# Mistakes.
expect_status 2 $tool --mca btl
expect_status 2 $tool --timeout soon
expect_status 2 $tool word
expect_status 2 $tool --mca btl self,no_such_transport
err_has "no_such_transport"
expect_status 2 strata-run --timeout "$job_limit" -n 2 $tool --mca btl self,no_such_transport
err_has "no_such_transport"
expect_status 2 strata-run --timeout "$job_limit" -n 2 $tool --mca btl self
err_has "no transport that is open reaches rank [01] from rank [01]"

# A transport that loses its connection after ten operations: the case fails, is named, and the next one runs.
fails=(--mca btl "self,shuffle" --mca btl_shuffle_fail_rank 1 --mca btl_shuffle_fail_after 10)
if strata-info --components | grep -q '^ *btl *shuffle\|shuffle'; then
    expect_status 1 $tool "${fails[@]}" --only transport/am_sizes --only messages/basic/short_message --json
    lines 'd[0]["case"] == "transport/am_sizes" and d[0]["result"] == "failed" and "rank" in d[0]["reason"]'
    lines 'len(d) == 3 and d[-1]["failed"] >= 1 and d[-1]["status"] == 1'
fi
# A case that hangs is ended, and is called hung. A message that is never sent is waited for: the peer is stopped from outside, once a
# case has passed. On a busy machine none may in three seconds.
passes() { grep -q ^passed "$work/out" || ! kill -0 "$job" 2>/dev/null; }
for limit in 3 15 60; do
    strata-run --timeout "$job_limit" -n 2 $tool --mca btl self,sm --timeout $limit --only messages >"$work/out" 2>"$work/err" &
    job=$!
    wait_until passes
    ! grep -q ^passed "$work/out" || break
    wait $job
done
# Of the ranks of all working copies that run this test, one whose temporary folder is ours.
child=$(for pid in $(pgrep -f "^[^ ]*strata-conformance .*--timeout $limit --only messages"); do
    ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qxF "TMPDIR=$TMPDIR" || echo "$pid"
done 2>/dev/null | head -n 1)
kill -STOP "$child" || fail "no case passes"
status=0
wait $job || status=$?
check "a job that hangs has status 1, not $status" test $status = 1
out_has "^failed   messages/.*: not done after $limit s$"
finish
