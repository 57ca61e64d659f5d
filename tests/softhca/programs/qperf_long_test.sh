#!/bin/bash
# qperf's tests of RDMA, unmodified: the 21 that need no XRC; the short form runs one of each kind. It gives the list of devices to
# free(). Each takes the second that -t says: -n ends two of the tests only.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
command -v qperf >/dev/null || skip "no qperf"
say_form "$(form "one test of each kind" "21 tests")"
if full_form; then
    names=({rc,uc,ud}_{bi_bw,bw,lat} rc_rdma_read_{bw,lat} {rc,uc}_rdma_write_{bw,lat,poll_lat}
        rc_{compare_swap,fetch_add}_mr ver_rc_{compare_swap,fetch_add})
else
    names=(rc_bi_bw uc_bw ud_lat rc_rdma_read_bw uc_rdma_write_poll_lat rc_fetch_add_mr ver_rc_compare_swap)
fi

next_port
soft_behind 600 qperf -lto 600 -lp "$port" >"$work/server" 2>&1
pids=($!)
listens_or_ended() { listens "$port" || ! kill -0 "${pids[0]}"; }
wait_until listens_or_ended
for name in "${names[@]}"; do
    [ "$n_failed" = 0 ] || break # the server serves one client after the other
    single 600 '^ +.*(bw|latency|msg_rate) += ' qperf -lp "$port" -to 600 -t 1 127.0.0.1 "$name"
done
if [ "$n_failed" = 0 ]; then
    soft 600 qperf -lp "$port" -to 600 127.0.0.1 quit >"$work/out" 2>&1 || fail "quit" "$work/out" "$work/server"
    wait "${pids[0]}" || fail "the server's status is $?" "$work/server"
    pids=()
fi
finish
