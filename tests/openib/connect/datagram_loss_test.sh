#!/bin/bash
# The queue pair of the datagrams that connections are made by is in trouble, with sockets out of the way: what is lost is
# said again by a queue pair that was brought back, which is said once.
# starts first
. "$STRATA_SOURCE/tests/openib/lib.sh"
alone=("${openib[@]}" --mca btl_openib_connect ud --mca btl_openib_connect_fallback 0)
# A datagram is sent long after it was posted, and the last one of a connection when all else of that has ended.
try 0 SOFTHCA_FAULTS='delay 3000' "${alone[@]}" -n 3 --report-transports=json --mca btl_openib_max_connected_peers 1 \
    "$STRATA_BUILD/tests/programs/reconnect" 10
unsaid_but_reports 'datagrams that are sent late'
at_least torn_down 30 'datagrams that are sent late'
# They take longer than the wait for an answer: what is said again comes twice, and what was said of a connection comes when
# it is gone and another is made.
for kept in 0 1; do
    at_once_late 8 ud $kept 4000 --mca btl_openib_connect_fallback 0
done
# In turn the first and the later ones, of who asks and who is asked: with a request that fails, and with a queue pair
# that does. Each process says so once.
for fault in datagram fatal; do
    for n in 1 2 3; do
        try 0 SOFTHCA_FAULTS="$fault $n" "${alone[@]}" -n 4 "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 2 1
        says 'soft0:1: the queue pair for datagrams .* is made ready again'
        ! grep -v 'is made ready again' "$work/err" || complain "$fault $n: says more than that"
        [ "$(wc -l <"$work/err")" -le 4 ] || complain "$fault $n: four processes say $(wc -l <"$work/err") times"
    done
done
# Both in one process, among datagrams that are lost.
try 0 SOFTHCA_FAULTS="datagram 1,fatal 5,drop 3" "${alone[@]}" -n 8 --report-transports=json "$STRATA_BUILD/tests/programs/reconnect" 20
at_least connected 14 'connections after both'
finish
