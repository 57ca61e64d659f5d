#!/bin/bash
# Two machines of two ranks each, under Open MPI's mpirun: each a network namespace with a host name of its own, joined by one veth link.
# Both have a docker0 and a virbr0 of the same address, and an interface of the same network that is not connected to the other's. Ranks
# of one machine use sm, ranks of two tcp, without a parameter.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
veth eth0
for m in 1 2; do
    network $m eth0 there 10.77.0.$m/24 || skip "eth0 cannot be set up"
    network $m docker0 bridge 172.17.0.1/16 || skip "this kernel has no bridges"
    network $m virbr0 bridge 192.168.122.1/24
    network $m br-lonely bridge 192.168.77.$m/24
done

passed() { # WHAT
    check "$1 ends well" test "$status" = 0
    check "$1: cases were run and none failed" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
}

cluster -np 4 -x STRATA_MCA_mca_base_report_transports=text "$apart" strata-conformance --only messages/traffic/
passed "a job of two machines by two ranks"
check "the machines are two" grep -q 'machine2:' "$work/err"
check "across machines: tcp" test "$(grep -c 'path 1 of 1 by tcp' "$work/err")" = 8
check "by the link that both have" test "$(grep -cE 'device TCP to 10\.77\.0\.[12],' "$work/err")" = 8
check "inside a machine: sm" test "$(grep -c 'path 1 of 1 by sm' "$work/err")" = 4

cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_btl_tcp_ports=20710-20711 strata-conformance --only transport/
passed "the transport's contract between two machines, by two ports"
cluster -np 4 strata-conformance --only clients/
passed "clients of the worker"

# A network of one number that is not connected, before eth0's in the order of links: both links of a pair go by eth0.
for m in 1 2; do network $m eth3 bridge 10.5.0.$m/24; done
cluster -np 4 -x STRATA_MCA_mca_base_report_transports=text "$apart" strata-conformance --only messages/traffic/
passed "equal networks that are not connected"
check "equal networks that are not connected: two paths" test "$(grep -c 'path 1 of 2 by tcp' "$work/err")" = 8
check "equal networks that are not connected: both by eth0" test "$(grep -cE 'device TCP to 10\.77\.0\.[12],' "$work/err")" = 16

# A list that leaves nothing that connects the two is an error that names the parameter's effect, not a hang.
cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_btl_tcp_if_include=br-lonely -x STRATA_MCA_btl_tcp_connect_timeout_ms=500 \
    strata-conformance --only messages/basic/short_message
check "no way between the machines: the job fails" test "$status" -ne 0
check "no way between the machines: the reason is said" grep -qE '192\.168\.77\..* port |btl_tcp_if_include' "$work/err"
finish
