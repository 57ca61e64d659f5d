#!/bin/bash
# All connections of a job fail at once while its ranks only wait to receive, in a ring: every one of them is told. A rank
# that is stopped, and connections that are only quiet, are not taken for failed.
. "$STRATA_SOURCE/tests/openib/lib.sh"
wait_recv=$STRATA_BUILD/tests/programs/wait_recv
quick=(--mca btl_openib_keepalive_ms 300 --mca btl_openib_timeout 10)
export SOFTHCA_FABRIC=keepalive-$$
in_background timeout -k 2 100 "${openib[@]}" -n 4 "${quick[@]}" "$wait_recv"
for _ in $(seq 100); do
    [ "$(grep -c '^waiting' "$work/err")" != 4 ] || break
    sleep 0.1
done
sleep 1.5 # some rounds of looking: nothing may be found
[ "$(grep -vc '^waiting' "$work/err")" = 0 ] || complain "quiet connections were taken for failed"
# Of this job only: softhca-stat sees the processes of this fabric.
for pid in $(softhca-stat | awk '$2 == "wait_recv" { print $1 }'); do
    softhca-stat --fault "$pid" 'connections down' >"$work/stat" 2>&1 || complain "no fault: $(cat "$work/stat")"
done
wait $job || complain "status $? of ranks whose connections have failed"
[ "$(grep -c 'the peer failed' "$work/out")" = 4 ] || complain "not all were told: $(cat "$work/out")"
unset SOFTHCA_FABRIC
try 0 "${openib[@]}" -n 3 "${quick[@]}" "$hostile" stop 1 2 openib-keepalive
unsaid "a rank that was stopped"
finish
