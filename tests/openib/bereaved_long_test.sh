#!/bin/bash
# A peer is killed before, during and after connecting, and in the middle of long messages both ways: the others are told, and go
# on. In long messages with receive queues per peer, too.
. "$STRATA_SOURCE/tests/openib/lib.sh"
crash_wanted=1 # it is killed
for queues in "$shared" "$peer"; do
    for when in before connecting connected sending receiving; do
        case $queues,$when in "$peer",before | "$peer",connect*) continue ;; esac
        try 137 "${openib[@]}" --keep-going --mca btl_openib_receive_queues "$queues" -n 3 \
            "$STRATA_BUILD/tests/programs/bereaved" $when bereaved
        [ "$(grep -c 'goes on$' "$work/out")" = 2 ] || complain "killed $when: $(cat "$work/out")"
        says 'rank 1 .*killed by signal 9'
    done
done
finish
