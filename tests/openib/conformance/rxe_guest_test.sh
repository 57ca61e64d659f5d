#!/bin/bash
# btl_openib on real kernel verbs: message semantics, the contract of transports and clients, collectives of nodes over Soft-RoCE in
# one guest.
# guest:
. "$STRATA_SOURCE/tests/guest/lib.sh"

# No Python here: an emulated processor takes seconds to start it.
expect_status 0 "${openib[@]}" -n 2 strata-perf --sizes 8:1m --batches "$(form 1 3)" --iters "$(form 2 20)" latency --check
check "every size arrives" test "$(awk '$1 ~ /^[0-9]+$/ && $2 > 0 { n++ } END { print n + 0 }' "$work/out")" = 18
expect_status 0 "${openib[@]}" -n "$(form 2 4)" strata-conformance --only "$(form messages/basic messages)"
check "conformance" grep -q "^[1-9][0-9]* cases passed, 0 failed.* [24] processes$" "$work/out"
# Sum over all ranks of a counter of coll_arrival; the report has them in one line.
counted() { grep -oE "\"sum\":[0-9]+,[^}]*\"name\":\"coll_arrival_$1\"" "$work/report" | grep -oE '^"sum":[0-9]+' | cut -d : -f 2; }
# Collectives of two nodes: shared memory within a node, the device between them. strata-perf checks what arrives. In the short form
# nodes have two ranks, not four, and the time of a message, which the delays follow, is given: to measure it takes most of the run.
for coll_form in pap_shm_direct $(form "" "direct pap_direct shm_direct auto"); do
    # shellcheck disable=SC2046 # two words
    expect_status 0 strata-run -n "$(form 4 16)" --mca btl sm,openib,self --mca mca_base_node "$(form 2 4)" \
        --mca coll_arrival_form "$coll_form" --report-counters=json --report-file "$work/report" \
        strata-perf --sizes "$(form 8:8 8:16)" --batches 1 --iters "$(form 2 10)" coll \
        --op alltoall,allgather,allreduce,bcast,barrier --mif 0,10 $(form "--base 100" "") --check
    # A row for each delay, size and operation; barriers have no sizes.
    check "$coll_form: every operation and size" \
        test "$(grep -cE '^(alltoall|allgather|allreduce|bcast|barrier) ' "$work/out")" = "$(form 10 18)"
    calls=$(counted calls) shm_calls=$(counted shm_calls) refused=$(counted refused)
    case $coll_form in *shm* | auto) within=1 ;; *) within=0 ;; esac
    check "$coll_form: calls by leaders and by members: $calls, within nodes $shm_calls, refused $refused" \
        test "$((calls > 0))$((shm_calls > 0))$refused" = "1${within}0"
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
