#!/bin/bash
# Collectives one of whose members is killed (tests/programs/coll_death.c): the call ends at all others with the name of that member.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
program=$STRATA_BUILD/tests/programs/coll_death
status=0
for ranks in 2 5; do
    for kind in 0 1 2 3 4 5 6 8 10 11; do
        out=$(timeout -k 5 "$job_limit" strata-run --mca btl sm,self --keep-going -n "$ranks" "$program" "$kind" 2>&1)
        ended=$?
        if [ $ended = 137 ] && [ "$(grep -c 'rank 1 failed, goes on$' <<<"$out")" = $((ranks - 1)) ]; then
            echo "operation $kind, $ranks ranks: the survivors go on"
        else
            echo "FAILED: operation $kind, $ranks ranks: status $ended: $(tail -n 8 <<<"$out" | tr '\n' '|')"
            status=1
        fi
    done
done
exit $status
