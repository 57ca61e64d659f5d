#!/bin/bash
# A receiver is stopped for 30 s while all others send to it, more than its queues hold: short messages; messages of 8 B to 300 kB, by
# both priorities and by RDMA, both ways. The receiver then continues, and no message is lost. The short form stops it for 3 s, with
# the device's retries and keepalive at a tenth of their times.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
limit=900
seconds=$(form 3 30)
say_form "stopped for $seconds s"
full_form || export STRATA_MCA_btl_openib_keepalive_ms=1000 STRATA_MCA_btl_openib_timeout=11
# All jobs run at the same time: most of it is waiting.
jobs=0
for mode in "$(form 6 12) stopped 1000 $(form 200 400)" "$(form 3 6) mixed 300000 $(form 50 200)"; do
    for queues in "$shared" "$short" "$peer"; do
        jobs=$((jobs + 1))
        mkdir "$work/$jobs"
        (
            work=$work/$jobs
            # shellcheck disable=SC2086 # words
            traffic "$queues" $mode 2 "$seconds"
            unsaid "a receiver that was stopped"
            awk -v s="$seconds" '$4 < (s - 0.5) * 1e6 { exit 1 }' "$work/out" ||
                complain "the receiver was not stopped for $seconds s: $(cat "$work/out")"
            exit $failures
        ) >"$work/$jobs/said" 2>&1 &
    done
done
for ((i = 0; i < jobs; i++)); do wait -n || failures=$((failures + 1)); done
cat "$work"/[1-9]/said
finish
