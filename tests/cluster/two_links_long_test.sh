#!/bin/bash
# Two machines joined by two links: both are used at once. One of them goes down for good in the middle of the traffic, and all arrives
# by the other.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
two_links
third_link
strata=(-x "STRATA_MCA_btl_tcp_if_include=10.77.0.0/24,10.79.0.0/24" -x STRATA_MCA_btl_tcp_timeout_ms=4000)
bytes() { ip netns exec ${space}2 cat "/sys/class/net/$1/statistics/rx_bytes"; } # LINK
both_used() { [ "$(bytes eth0)" -gt 5000000 ] && [ "$(bytes eth2)" -gt 5000000 ]; }

cluster -np 4 "${strata[@]}" -x STRATA_MCA_btl=tcp,sm,self -x STRATA_MCA_mca_base_report_transports=text \
    "$apart" strata-conformance --only messages/
check "messages end well" test "$status" = 0
check "cases were run and none failed" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
for link in 10.77.0 10.79.0; do
    check "across machines: a path by $link" test "$(grep -cE "device TCP to ${link//./\\.}\.[12]," "$work/err")" = 8
done
check "inside a machine: sm alone" test "$(grep -c 'path 1 of 1 by sm' "$work/err")" = 4

begin_cluster -np 2 "${strata[@]}" -x STRATA_MCA_btl=tcp,self "$STRATA_BUILD/tests/programs/traffic" alltoall 1000000 20 40
check "long messages go by both" wait_until both_used
ip -n ${space}1 link set eth2 down
end_cluster
check "a link less: ends well" test "$status" = 0
check "a link less: all has arrived" grep -q '^alltoall 1000000 ' "$work/out"
cluster -np 2 "${strata[@]}" -x STRATA_MCA_btl=tcp,self strata-conformance --only transport/
check "a link that is down from the start: ends well" test "$status" = 0
finish
