#!/bin/bash
# btl_openib on real kernel verbs: message semantics, the contract of transports and clients over Soft-RoCE in one guest.
# guest:
. "$STRATA_SOURCE/tests/guest/lib.sh"

expect_status 0 "${openib[@]}" -n 2 strata-perf --json --sizes 8:1m --batches 3 --iters "$(form 5 20)" latency --check
check "every size arrives" python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert len(rows) >= 10 and all(row["median"] > 0 for row in rows), rows' "$work/out"
expect_status 0 "${openib[@]}" -n "$(form 2 4)" strata-conformance --only "$(form messages/basic messages)"
check "conformance" grep -q "^[1-9][0-9]* cases passed, 0 failed.* [24] processes$" "$work/out"
# The contract of transports, and clients of the worker beside the PML: ranks are threads of one process.
export STRATA_CONFORMANCE=openib CK_DEFAULT_TIMEOUT=900
for program in btl_test clients_test notify_test landing_ring_test channel_test channel_set_test; do
    # Channels have many cases, whose full form would take longer than everything else here.
    case $program in channel*) export STRATA_TEST_FORM=short ;; esac
    expect_status 0 "$STRATA_BUILD/tests/conformance/$program"
    check "$program: the transport was tested" grep -q "^run openib" "$work/err"
done
finish
