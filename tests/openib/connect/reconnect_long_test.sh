#!/bin/bash
# A thousand connections are made and closed, by each method that softhca allows, also with every seventh message of each process
# lost: connection requests and replies, data, CLOSE messages. Memory, descriptors, queue pairs and address handles do not grow.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
limit=900
rounds=$(form 100 500)
say_form "$((2 * rounds)) of 1000 connections"
# The device allows the queue pairs of two peers and one for datagrams, and twice the handles that outlive their connections (32).
bounds=(SOFTHCA_MAX_AH=70)
nothing_grows() { # WHAT
    [ "$(grep -c ' grew by ' "$work/out")" = 3 ] || complain "$1: not every rank says how much it grew"
    # A leaf of a table may be new, and the objects of a peer of which two are connected for a moment where the machine is busy;
    # anything kept of each connection would be hundreds of times as much.
    awk '/ grew by / && ($5 > 4096 || $10 > 16384 || $12 > 8) { bad = 1 } END { exit bad }' "$work/out" ||
        complain "$1: $(grep ' grew by ' "$work/out")"
}
for method in ud tcp; do
    for every in 0 7; do
        what="$method, one of $every lost"
        try 0 "${bounds[@]}" SOFTHCA_FAULTS="drop $every,qp-most 7" "${openib[@]}" -n 3 --report-transports=json \
            --mca btl_openib_connect $method --mca btl_openib_connect_fallback 0 --mca btl_openib_connect_retry_ms 2 \
            --mca btl_openib_max_connected_peers 1 --mca btl_openib_timeout 8 "$STRATA_BUILD/tests/programs/reconnect" $rounds
        unsaid_but_reports "$what"
        # All but the last connection, at both ends. The rank of the last but one may leave before it has seen the end of its own; a
        # connection made above the limit may be such a last one, too.
        at_least torn_down $((4 * rounds - 3 - 2 * $(count forced))) "$what"
        [ "$(grep -c "\"connect\":\"$method\"" "$work/err")" = 3 ] || complain "$method was not what was used"
        nothing_grows "$what"
        came qp-refused 0 0 "$what"
        [ $every = 0 ] && continue
        # Each exchange sends two messages of data and two of closing by the connection, and each connection by datagrams three datagrams.
        came dropped "$rounds" $((10 * rounds)) "$what"
        if [ $method = ud ]; then
            came datagrams $((rounds * 4 / 5)) $((8 * rounds)) "$what"
            at_least repeats $((rounds * 4 / 5)) "$what"
        fi
        echo "$what: $(tally dropped) lost, $(tally datagrams) of them datagrams, $(count repeats) messages repeated"
    done
done
# Each connection waits anew until another one is closed: a wait long ago must not let one exceed the limit. A connection that waits for a
# second may exceed it, which happens to a few on a busy machine; the fault would let nearly all.
cycles=$(form 1200 6000)
try 0 "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_max_connected_peers 1 "$STRATA_BUILD/tests/programs/reconnect" "$cycles"
unsaid_but_reports "$cycles cycles"
[ "$(count forced)" -le $((cycles / 8)) ] || complain "$(count forced) connections were made above the limit"
nothing_grows "$cycles cycles"
finish
