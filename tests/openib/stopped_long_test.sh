#!/bin/bash
# A receiver is stopped for 30 s while all others send to it, more than its queues hold; then it goes on, and nothing is lost.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=300
export HOSTILE_TIMEOUT=90
# At the same time: mostly they wait.
for queues in "$shared" "$short" "$peer"; do
    mkdir "$work/$queues"
    (
        work=$work/$queues
        crowd "$queues" 12 stopped 1000 400 2 30
        unsaid "a receiver that was stopped"
        exit $failures
    ) >"$work/$queues/said" 2>&1 &
done
for _ in 1 2 3; do wait -n || failures=$((failures + 1)); done
cat "$work"/[SP],*/said
finish
