#!/bin/bash
# Connections of btl_openib on a real kernel's verbs, by each method: the first messages of all to all at once, and fewer
# connections kept than there are peers.
. "$STRATA_SOURCE/tests/guest/lib.sh"

conformance=$STRATA_BUILD/tests/programs/conformance
all='for method in ud tcp $METHODS; do
    for kept in 0 2; do
        timeout 100 strata-run -n 6 --mca btl openib,self --mca btl_openib_connect $method \
            --mca btl_openib_max_connected_peers $kept '$conformance' all_to_all || exit 1
        echo "$method, $kept kept: passed"
    done
done'
methods=tcp
if grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile"; then methods=rdmacm; else echo "this build has no librdmacm"; fi
methods=${methods#tcp}
expect_status 0 "$guest" --timeout 290 -x "METHODS=$methods" bash -c "$all"
for method in ud tcp $methods; do
    check "$method: all connected" grep -q "$method, 0 kept: passed" "$work/out"
    check "$method: connections come and go" grep -q "$method, 2 kept: passed" "$work/out"
done
if [ -n "$methods" ]; then
    expect_status 0 "$guest" --timeout 200 strata-run -n 2 --mca btl openib,self --mca btl_openib_connect rdmacm \
        "$conformance" suite_basic
    check "conformance over rdmacm" grep -q "cases passed on 2 ranks" "$work/out"
fi
finish
