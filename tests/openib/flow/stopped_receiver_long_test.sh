#!/bin/bash
# A receiver is stopped for 30 s while all others send to it, more than its queues hold: short messages; messages of 8 B to 300 kB, by
# both priorities and by RDMA, both ways. Then it goes on, and nothing is lost.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=300
export HOSTILE_TIMEOUT=120
# At the same time: mostly they wait.
jobs=0
for mode in "12 stopped 1000 400" "6 mixed 300000 200"; do
    for queues in "$shared" "$short" "$peer"; do
        jobs=$((jobs + 1))
        mkdir "$work/$jobs"
        (
            work=$work/$jobs
            # shellcheck disable=SC2086 # words
            traffic "$queues" $mode 2 30
            unsaid "a receiver that was stopped"
            awk '$4 < 29e6 { exit 1 }' "$work/out" || complain "it was not stopped for 30 s: $(cat "$work/out")"
            exit $failures
        ) >"$work/$jobs/said" 2>&1 &
    done
done
for ((i = 0; i < jobs; i++)); do wait -n || failures=$((failures + 1)); done
cat "$work"/[1-9]/said
finish
