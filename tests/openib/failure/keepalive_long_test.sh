#!/bin/bash
# All connections of a job fail at once while its ranks only wait to receive, in a ring: every rank is told. A rank that is stopped
# and connections without traffic are not reported as failed.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form 3 4) ranks wait"
wait_recv=$STRATA_BUILD/tests/programs/wait_recv
ranks=$(form 3 4)
quick=(--mca btl_openib_keepalive_ms 300 --mca btl_openib_timeout 10)
export SOFTHCA_FABRIC=keepalive-$$
in_background timeout -k 2 600 "${openib[@]}" -n "$ranks" "${quick[@]}" "$wait_recv"
wait_until lines_are "$work/err" '^waiting' "$ranks" || complain "not all ranks wait"
# softhca-stat sees the processes of this fabric only, which are those of this job.
pids=$(softhca-stat | awk '$2 == "wait_recv" { print $1 }')
# Five probes of each peer, one in each interval of keepalive: no failure may be found meanwhile.
have_probed() {
    local pid
    for pid in $pids; do
        strata-info --json --live "$pid" | python3 -c '
import json, sys
counters = json.load(sys.stdin)["contexts"][0]["counters"]
sys.exit(not any(c["name"] == "btl_openib_probes" and c["value"] >= int(sys.argv[1]) for c in counters))' $((5 * (ranks - 1))) || return 1
    done
}
[ "$(wc -w <<<"$pids")" = "$ranks" ] || complain "softhca-stat lists not $ranks ranks: $(softhca-stat)"
wait_until have_probed || complain "the ranks did not probe their peers"
[ "$(grep -vc '^waiting' "$work/err")" = 0 ] || complain "connections without traffic were reported as failed"
for pid in $pids; do
    softhca-stat --fault "$pid" 'connections down' >"$work/stat" 2>&1 || complain "no fault: $(cat "$work/stat")"
done
wait $job || complain "status $? of ranks whose connections have failed"
[ "$(grep -c 'the peer failed' "$work/out")" = "$ranks" ] || complain "not every rank was told: $(cat "$work/out")"
unset SOFTHCA_FABRIC
try 0 "${openib[@]}" -n 3 "${quick[@]}" "$hostile" stop 1 2 openib-keepalive
unsaid "a rank that was stopped"
finish
