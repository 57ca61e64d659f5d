#!/bin/bash
# What runs out on a machine: room for callers in the kernel's queue, which is waited for, and ports of a range, which ends the job
# with the parameter's name.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
ranks_per_machine=8
two_links
strata=(-x "STRATA_MCA_btl=tcp,sm,self" -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24)
counter() { # MACHINE NAME: of the kernel's TcpExt
    ip netns exec "$space$1" awk -v name="$2" '$1 != "TcpExt:" { next } !n { n = split($0, head, " "); next }
        { for (i = 1; i <= n; i++) if (head[i] == name) print $i }' /proc/net/netstat
}
for m in 1 2; do
    ip netns exec $space$m sh -c 'echo 1 >/proc/sys/net/core/somaxconn' 2>"$work/err" || skip "somaxconn cannot be set: $(cat "$work/err")"
done
before=$(($(counter 1 ListenOverflows) + $(counter 2 ListenOverflows)))
cluster -np 16 "${strata[@]}" "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 1 2
check "a queue of one caller: ends well" test "$status" = 0
check "a queue of one caller: all has arrived" grep -q '^alltoall 1000 ' "$work/out"
check "the queue was full" test $(($(counter 1 ListenOverflows) + $(counter 2 ListenOverflows))) -gt "$before"

cluster -np 3 "${strata[@]}" -x STRATA_MCA_btl_tcp_ports=20720-20720 strata-conformance --only messages/basic/short_message
check "a range of one port for two ranks: the job fails" test "$status" -ne 0
check "a range of one port for two ranks: the parameter is named" grep -q 'btl_tcp_ports = 20720-20720' "$work/err"

third_link
ranks_per_machine=2
strata=(-x "STRATA_MCA_btl=tcp,sm,self" -x "STRATA_MCA_btl_tcp_if_include=10.77.0.0/24,10.79.0.0/24")
cluster -np 4 "${strata[@]}" -x STRATA_MCA_btl_tcp_ports=20720-20722 "$apart" strata-conformance --only messages/basic/short_message
check "three ports for the two links of two ranks: the job fails" test "$status" -ne 0
check "three ports for the two links of two ranks: four are needed" \
    grep -q 'btl_tcp_ports = 20720-20722 .* needs 4 .* 2 links (btl_tcp_links)' "$work/err"
cluster -np 4 "${strata[@]}" -x STRATA_MCA_btl_tcp_ports=20720-20723 "$apart" strata-conformance --only messages/basic/short_message
check "four ports for the two links of two ranks: the job ends well" test "$status" = 0
finish
