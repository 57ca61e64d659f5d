#!/bin/bash
# Collectives one of whose members is killed (tests/programs/coll_death.c): short and long blocks, at once and on the way. The calls of all
# others end with the name of that member, and they go on without it.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
program=$STRATA_BUILD/tests/programs/coll_death
status=0
say_form "kinds of collectives, 5 ranks; full: 2 ranks and tcp, too"
one() { # RANKS BTL KIND COUNT ROUND POLLS
    local out ended
    out=$(timeout -k 5 "$job_limit" strata-run --mca btl "$2,self" --keep-going -n "$1" "$program" "$3" "$4" "$5" "$6" 2>&1)
    ended=$?
    if [ $ended != 137 ] || [ "$(grep -c 'rank 1 failed, goes on$' <<<"$out")" != $(($1 - 1)) ]; then
        echo "FAILED: $1 ranks, $2, operation $3, $4 elements, call $5, $6 polls: status $ended: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
}
for kind in 0 1 2 3 4 5 6 7 8 9 10 11; do
    one 5 sm "$kind" 5000 20 $((kind % 3))
    one 5 sm "$kind" "$((kind % 2 ? 20000 : 8))" $((kind % 2)) 1
    if full_form; then
        for polls in 0 1 2 3 5 10 100 1000; do
            one 2 sm "$kind" 5000 2 "$polls"
            one 5 sm "$kind" 20000 2 "$polls"
            one 4 tcp "$kind" 20000 2 "$polls"
        done
    fi
done
exit $status
