#!/bin/bash
# Bandwidth between two machines (network namespaces) by one link and by two, each limited to 400 Mbit/s (tbf): two are to give 1.8 times
# as much. Needs root. Started by `make bench-tcp-links`.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
command -v tc >/dev/null || skip "tc is not installed (Debian: iproute2)"
two_links
third_link
for m in 1 2; do
    for link in eth0 eth2; do
        ip netns exec $space$m tc qdisc add dev $link root tbf rate 400mbit burst 256kb latency 400ms || skip "this kernel has no tbf"
    done
done
for links in 10.77.0.0/24 10.77.0.0/24,10.79.0.0/24; do
    cluster -np 2 -x STRATA_MCA_btl_tcp_if_include=$links -x STRATA_MCA_btl=tcp,self strata-perf bw --sizes 1m:1m --batches 3 --iters 2
    echo "$links: $(grep 'MiB  ' "$work/out")"
done
