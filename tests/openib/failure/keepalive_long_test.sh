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
until [ "$(grep -c '^waiting' "$work/err")" = "$ranks" ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
# Five intervals of keepalive, in which no failure may be found. A busy machine fits fewer probes into this time: the test is weaker then,
# never wrong.
sleep 1.5
[ "$(grep -vc '^waiting' "$work/err")" = 0 ] || complain "connections without traffic were reported as failed"
# softhca-stat sees the processes of this fabric only, which are those of this job.
for pid in $(softhca-stat | awk '$2 == "wait_recv" { print $1 }'); do
    softhca-stat --fault "$pid" 'connections down' >"$work/stat" 2>&1 || complain "no fault: $(cat "$work/stat")"
done
wait $job || complain "status $? of ranks whose connections have failed"
[ "$(grep -c 'the peer failed' "$work/out")" = "$ranks" ] || complain "not every rank was told: $(cat "$work/out")"
unset SOFTHCA_FABRIC
try 0 "${openib[@]}" -n 3 "${quick[@]}" "$hostile" stop 1 2 openib-keepalive
unsaid "a rank that was stopped"
finish
