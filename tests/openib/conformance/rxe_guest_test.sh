#!/bin/bash
# btl_openib on real kernel verbs: message semantics, the contract of transports and clients, collectives of nodes over Soft-RoCE in one
# guest.
# guest:
. "$STRATA_SOURCE/tests/guest/lib.sh"

expect_status 0 "${openib[@]}" -n 2 strata-perf --json --sizes 8:1m --batches 3 --iters "$(form 5 20)" latency --check
check "every size arrives" python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert len(rows) >= 10 and all(row["median"] > 0 for row in rows), rows' "$work/out"
expect_status 0 "${openib[@]}" -n "$(form 2 4)" strata-conformance --only "$(form messages/basic messages)"
check "conformance" grep -q "^[1-9][0-9]* cases passed, 0 failed.* [24] processes$" "$work/out"
# Collectives of nodes of four ranks: shared memory within a node, the device between them. strata-perf checks what arrives.
for coll_form in pap_shm_direct $(form "" "direct pap_direct shm_direct auto"); do
    expect_status 0 strata-run -n "$(form 8 16)" --mca btl sm,openib,self --mca mca_base_node 4 --mca coll_arrival_form "$coll_form" \
        --report-counters=json --report-file "$work/report" strata-perf --sizes 8:16 --batches 1 --iters "$(form 2 10)" coll \
        --op alltoall,allgather,allreduce,bcast,barrier --mif 0,10 --check
    check "$coll_form: every operation and size" test "$(grep -cE '^(alltoall|allgather|allreduce|bcast|barrier) ' "$work/out")" = 18
    check "$coll_form: calls by leaders and by members" python3 - "$work/report" "$coll_form" <<'PY'
import json, sys
rows = [row for line in open(sys.argv[1]) for row in json.loads(line)["rows"]]
count = {name: sum(row["sum"] for row in rows if row["name"] == "coll_arrival_" + name) for name in ("calls", "shm_calls", "refused")}
assert count["calls"] > 0 and count["refused"] == 0 and (count["shm_calls"] > 0) == (sys.argv[2] not in ("direct", "pap_direct")), count
PY
done
# The contract of transports, and clients of the worker beside the PML: ranks are threads of one process.
export STRATA_CONFORMANCE=openib CK_DEFAULT_TIMEOUT=900
for program in btl_test clients_test notify_test landing_ring_test channel_test channel_set_test; do
    # Channels have many cases, whose full form would take longer than everything else here.
    case $program in channel*) export STRATA_TEST_FORM=short ;; esac
    expect_status 0 "$STRATA_BUILD/tests/conformance/$program"
    check "$program: the transport was tested" grep -q "^run openib" "$work/err"
done
finish
