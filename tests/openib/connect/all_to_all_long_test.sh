#!/bin/bash
# Connections of btl_openib on softhca, with processes for ranks: many made at once, and fewer kept than there are peers,
# the ones used last.
. "$STRATA_SOURCE/tests/openib/lib.sh"
at_once 64 ud 0
at_once 64 ud 8
few() { # RANKS MOST-CONNECTIONS
    try 0 "${openib[@]}" -n "$1" --mca btl_openib_max_connected_peers "$2" strata-conformance --only messages
    grep -q "^[1-9][0-9]* cases passed, 0 failed.* $1 processes$" "$work/out" || complain "$1 ranks, at most $2 connections: $(cat "$work/out")"
}
few 8 1
few 4 2
# The one to go is the least recently used: not rank 1, which rank 0 talks to between any two others.
try 0 "${openib[@]}" -n 4 --report-transports=json --mca btl_openib_max_connected_peers 2 "$STRATA_BUILD/tests/programs/reconnect" 100 favourite
for rank in 1 2 3; do
    made=$(report rank $rank connections)
    [ "$made" -ge 90 ] || [ $rank = 1 ] || complain "rank $rank, used every third time: $made connections, not 100"
    [ "$made" -le 5 ] || [ $rank != 1 ] || complain "rank 1, used most: $made connections"
done
finish
