#!/bin/bash
# The conformance suite between machines, puts and gets among it: two of two ranks each (tcp, sm and self), then one rank of each, as
# many contracts are for a pair; by one link, then by two at once. Short form: some of the cases.
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/cluster/lib.sh"
if full_form; then cases=(); else cases=(channel/everybody channel/long_messages clients/ coll/ transport/ messages/traffic/); fi
say_form "cases: ${cases[*]:-all}"
two_links
third_link
bytes() { ip netns exec ${space}2 cat /sys/class/net/eth2/statistics/rx_bytes; }

passed() { # RANKS NETWORKS CASE...: all chosen cases end well, these among them
    local only=() name
    for name in "${cases[@]}"; do only+=(--only "$name"); done
    # All cases, but their short form: 10^5 random collectives are for coll_test.
    cluster -np "$1" -x STRATA_TEST_FORM=short -x STRATA_MCA_btl=tcp,sm,self -x "STRATA_MCA_btl_tcp_if_include=$2" strata-conformance "${only[@]}"
    check "$1 ranks by $2: ends well" test "$status" = 0
    check "$1 ranks by $2: cases were run and none failed" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
    for name in "${@:3}"; do check "$1 ranks by $2: $name" grep -qE "^passed +$name( |\$)" "$work/out"; done
}
one=10.77.0.0/24 two=10.77.0.0/24,10.79.0.0/24
before=$(bytes)
for links in $one $two; do
    passed 4 $links channel/everybody
    passed 2 $links channel/long_messages transport/rdma_get transport/rdma_put transport/rdma_put_notify
    [ $links = $two ] || before=$(bytes)
done
check "the second link carried some of it" test $(($(bytes) - before)) -gt 100000
finish
