#!/bin/bash
# A thousand connections that come and go, by each method that softhca allows, also with every seventh message of each process
# lost: requests and answers, data, and the words that close a connection. Nothing grows by it: memory, descriptors, queue
# pairs, address handles.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=240
rounds=500
# What is allowed for two peers: their queue pairs and that for datagrams; handles that outlive their connections (32), twice.
bounds=(SOFTHCA_MAX_AH=70)
nothing_grows() { # WHAT
    [ "$(grep -c ' grew by ' "$work/out")" = 3 ] || complain "$1: not all say how much they grew"
    # A table's leaf may be new; with each connection something would be 900 times as much.
    awk '/ grew by / && ($5 > 0 || $10 > 16384 || $12 > 2) { bad = 1 } END { exit bad }' "$work/out" ||
        complain "$1: $(grep ' grew by ' "$work/out")"
}
for method in ud tcp; do
    for every in 0 7; do
        what="$method, one of $every lost"
        try 0 "${bounds[@]}" SOFTHCA_FAULTS="drop $every,qp-most 7" "${openib[@]}" -n 3 --report-transports=json \
            --mca btl_openib_connect $method --mca btl_openib_connect_fallback 0 --mca btl_openib_connect_retry_ms 2 \
            --mca btl_openib_max_connected_peers 1 --mca btl_openib_timeout 8 "$STRATA_BUILD/tests/programs/reconnect" $rounds
        unsaid_but_reports "$what"
        at_least torn_down 1998 "$what"
        [ "$(grep -c "\"connect\":\"$method\"" "$work/err")" = 3 ] || complain "$method was not what was used"
        nothing_grows "$what"
        came qp-refused 0 0 "$what"
        [ $every = 0 ] && continue
        # Of each exchange two messages of data and two words of closing go by the connection, of a connection by datagrams three.
        came dropped 500 5000 "$what"
        if [ $method = ud ]; then
            came datagrams 400 4000 "$what"
            at_least repeats 400 "$what"
        fi
        echo "$what: $(tally dropped) lost, $(tally datagrams) of them datagrams, $(count repeats) words said again"
    done
done
# Each connection waits anew for another to go, and none is made above the limit because of waits long ago; two, should
# the machine be so busy that none goes for a second.
try 0 "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_max_connected_peers 1 "$STRATA_BUILD/tests/programs/reconnect" 6000
unsaid_but_reports "6000 cycles"
[ "$(count forced)" -le 2 ] || complain "$(count forced) connections were made above the limit"
nothing_grows "6000 cycles"
finish
