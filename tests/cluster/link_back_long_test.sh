#!/bin/bash
# The only link between two machines is down for five seconds while messages go both ways, and comes back: all arrive, each once.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
two_links
down_and_up() { # WHAT TIMEOUT-MS
    begin_cluster -np 4 -x STRATA_MCA_btl=tcp,sm,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 -x STRATA_MCA_btl_tcp_timeout_ms="$2" \
        "$STRATA_BUILD/tests/programs/traffic" alltoall 30000 100 50
    check "$1: messages go" wait_until bytes_are 20000000
    ip -n ${space}1 link set eth0 down
    wait_until link_is eth0 DOWN
    local before
    before=$(bytes)
    sleep 5
    check "$1: nothing goes meanwhile" test "$(bytes)" = "$before"
    check "$1: the job is not through" kill -0 "$job"
    ip -n ${space}1 link set eth0 up
    end_cluster
    check "$1: ends well" test "$status" = 0
    check "$1: all has arrived" grep -q '^alltoall 30000 ' "$work/out"
}
bytes() { ip netns exec ${space}2 cat /sys/class/net/eth0/statistics/rx_bytes; }
start=0
bytes_are() { [ $(($(bytes) - start)) -gt "$1" ]; }
down_and_up "the connection stays" 60000
start=$(bytes)
down_and_up "the connection is made again" 8000
finish
