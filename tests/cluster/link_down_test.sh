#!/bin/bash
# The only link between two machines goes down for good: both ranks, which only wait for each other, are told that their peer has
# failed, by its rank and the reason. mpirun has a link of its own. The link was down for a moment before, which fails nobody.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
control=10.78.0
for link in eth0:10.77.0 eth1:$control; do
    veth ${link%:*}
    for m in 1 2; do network $m ${link%:*} there ${link#*:}.$m/24 || skip "${link%:*} cannot be set up"; done
done
link_is() { ip -n ${space}2 link show eth0 | grep -qE "state [A-Z]*$1 "; }
wait_until link_is UP # the kernel tells of a new link with a delay
cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 -x STRATA_MCA_btl_tcp_timeout_ms=4000 \
    "$STRATA_BUILD/tests/programs/wait_recv" &
job=$!
check "both ranks wait" wait_until lines_are "$work/err" '^waiting' 2
ip -n ${space}1 link set eth0 down
wait_until link_is DOWN
ip -n ${space}1 link set eth0 up
wait_until link_is UP
check "nobody has failed when the link is back" test ! -s "$work/out"
ip -n ${space}1 link set eth0 down
wait "$job"
check "rank 0 was told" grep -q '^rank 0: .*peer failed' "$work/out"
check "rank 1 was told" grep -q '^rank 1: .*peer failed' "$work/out"
for rank in 0 1; do
    check "rank $rank is named, and its address" grep -qE "rank $rank on host .* failed: .*10\.77\.0\.$((rank + 1))" "$work/err"
done
finish
