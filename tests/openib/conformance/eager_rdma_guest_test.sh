#!/bin/bash
# Eager RDMA over Soft-RoCE: numbered messages, whose every byte is checked, by seals, by immediate data and by auto; between many ranks
# that gain and lose rings; all of it with one packet of a hundred lost each way.
# guest: --two-devices --netem "loss 1%"
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"

own_devices 'rxe$((PMIX_RANK % 2))'
messages=$(form 300 5000)
rings=(--report-transports=json --mca mca_base_verbose 3 --mca btl_openib_eager_rdma_after 4)
by_rings() { python3 "$STRATA_SOURCE/tests/openib/report.py" "$work/err" sum eager_rdma; }
before=$(dropped)
for detection in auto seal imm; do
    expect_status 0 "${openib[@]}" "${rings[@]}" --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_detect $detection -n 2 "$work/own" \
        "$STRATA_BUILD/tests/programs/numbered" "$messages"
    check "$detection: rings carry messages" test "$(by_rings)" -ge $((messages / 2))
    # auto: rxe does not promise that the data of a write come in order (ibv_query_qp_data_in_order), so that no flag may tell.
    by=$([ $detection = auto ] && echo '(seal|imm)' || echo $detection)
    check "$detection: it is used" grep -Eq "its messages found by $by" "$work/err"
    check "$detection: no flag" test "$(grep -c 'its messages found by flag' "$work/err")" = 0
    echo "$detection: $(by_rings) of $((2 * messages)) messages by rings"
done
# Which detection is right, and whether at all, is up to the device.
expect_status 0 "${openib[@]}" "${rings[@]}" --mca btl_openib_eager_rdma auto -n 2 "$work/own" "$STRATA_BUILD/tests/programs/numbered" "$messages"
check "auto has measured" grep -qE 'a write takes [1-9][0-9]* ns, a send [1-9][0-9]* ns' "$work/err"
if ! grep -q 'hot peers get rings' "$work/err"; then check "auto: no rings where nobody wants them" test "$(by_rings)" = 0; fi
grep -o 'a write takes.*' "$work/err"
# Rings that come and go.
ranks=$(form 4 6)
for pattern in random incast; do
    expect_status 0 "${openib[@]}" "${rings[@]}" --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_peers 1 \
        --mca btl_openib_eager_rdma_window 32 -n "$ranks" "$work/own" "$STRATA_BUILD/tests/programs/storm" $pattern "$messages" 1
    check "$pattern: rings carry messages" test "$(by_rings)" -ge 20
    echo "$pattern: $(cat "$work/out"), $(by_rings) by rings"
done
check "$(($(dropped) - before)) packets were lost" test $(($(dropped) - before)) -ge 10
finish
