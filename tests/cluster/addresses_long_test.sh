#!/bin/bash
# Addresses of two machines as they are in the field: several on one interface, networks joined by a route, a caller whose own address is
# none that it has published, a host name that means 127.0.0.1, lists that exclude.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
ranks_per_machine=1
two_links # eth0 10.77.0, eth1 10.78.0
veth eth2
for m in 1 2; do
    network $m eth2 there 10.80.$m.$m/24 || skip "eth2 cannot be set up"
    ip -n $space$m route add 10.80.$((3 - m)).0/24 dev eth2
    ip -n $space$m addr add 10.77.0.1$m/24 dev eth0
    ip -n $space$m addr add 10.82.0.$m/24 dev eth0
    ip -n $space$m addr add fd77::$m/64 dev eth0 nodad 2>/dev/null # where the kernel has IPv6
    ip -n $space$m addr add 10.81.0.$m/24 dev eth2
    ip -n $space$m route replace 10.81.0.0/24 dev eth2 src 10.80.$m.$m
done
wait_until link_is eth2 UP
names_mean_loopback

job() { # WHAT PATHS ADDRESS OPTION-OF-MPIRUN...: the pair has so many paths, one of them to an address that begins so
    local what=$1 paths=$2 address=${3//./\\.}
    shift 3
    cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_mca_base_report_transports=text "$@"
    check "$what: ends well" test "$status" = 0
    check "$what: cases were run and none failed" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
    check "$what: $paths paths" test "$(grep -c "path 1 of $paths by tcp" "$work/err")" = 2
    check "$what: by $address" test "$(grep -cE "device TCP to $address" "$work/err")" = 2
}
cases=("$apart" strata-conformance --only messages/basic/short_message --only messages/traffic/)
job "no parameter" 3 10.78.0. "$with_hosts" "${cases[@]}"
job "several addresses on an interface" 1 10.77.0. -x STRATA_MCA_btl_tcp_if_include=eth0 "${cases[@]}"
job "two networks and a route" 1 10.80. -x STRATA_MCA_btl_tcp_if_include=10.80.0.0/16 "${cases[@]}"
job "a caller with another address" 1 10.8 -x STRATA_MCA_btl_tcp_if_include=10.81.0.0/24 "${cases[@]}"
job "what is excluded" 1 10.82.0. -x STRATA_MCA_btl_tcp_if_exclude=eth1,eth2,10.77.0.0/24,fd77::/64 "${cases[@]}"
if ip -n ${space}1 addr show dev eth0 | grep -q fd77::1; then
    job "IPv6 alone" 1 fd77:: -x STRATA_MCA_btl_tcp_if_include=fd77::/64 "${cases[@]}"
fi
cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_btl_tcp_if_include=eth0 -x STRATA_MCA_btl_tcp_if_exclude=eth0 "${cases[@]}"
check "all excluded: the job fails" test "$status" -ne 0
check "all excluded: both parameters are named" grep -q 'that btl_tcp_if_include and btl_tcp_if_exclude leave' "$work/err"
finish
