#!/bin/bash
# Connections that come and go on Soft-RoCE with one packet of a hundred lost each way, acknowledgements of the closing messages
# among them: no peer is taken for dead.
# guest: --two-devices --netem "loss 1%"
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"

own_devices 'rxe$((PMIX_RANK > 0))'
rounds=$(form 60 300)
expect_status 0 "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_max_connected_peers 1 --mca btl_openib_timeout 12 \
    "$work/own" "$STRATA_BUILD/tests/programs/reconnect" "$rounds"
check "packets were lost: $(dropped)" test "$(dropped)" -ge 10
check "nothing is said: $(grep -v '^{' "$work/err")" test "$(grep -cv '^{' "$work/err")" = 0
echo "$rounds rounds, $(dropped) packets lost"
finish
