#!/bin/bash
# The only link between two machines goes down for good: both ranks, which only wait for each other, are told that their peer has
# failed, by its rank and the reason, in each kind of operation. mpirun has a link of its own. The link was down for a moment before,
# which fails nobody.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
two_links
begin_cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 -x STRATA_MCA_btl_tcp_timeout_ms=4000 \
    "$STRATA_BUILD/tests/programs/pending"
check "both ranks wait" wait_until lines_are "$work/err" '^waiting' 2
ip -n ${space}1 link set eth0 down
wait_until link_is eth0 DOWN
ip -n ${space}1 link set eth0 up
wait_until link_is eth0 UP
check "nobody has failed when the link is back" test ! -s "$work/out"
ip -n ${space}1 link set eth0 down
end_cluster
for rank in 0 1; do
    check "rank $rank was told by all of its operations" grep -q "^rank $rank: 4 failed" "$work/out"
    check "rank $rank is named, and its address" grep -qE "rank $rank on host .* failed: .*10\.77\.0\.$((rank + 1))" "$work/err"
done
finish
