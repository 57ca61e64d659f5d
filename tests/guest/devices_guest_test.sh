#!/bin/bash
# One guest with two devices: packets between them cross a link, where they can get lost and are sent again.
# guest: --two-devices
. "$STRATA_SOURCE/tests/guest/lib.sh"

sum() { cat "$@" | awk '{ n += $1 } END { print n }'; } # FILE...
retries() { sum /sys/class/infiniband/rxe[01]/ports/1/hw_counters/completer_retry_err; }
pingpong() {
    ibv_rc_pingpong -d rxe0 -g 1 -n 2000 >"$work/server" 2>&1 &
    for _ in $(seq 600); do
        ! ss -ltn | grep -q ":18515 " || break
        sleep 0.1
    done
    ibv_rc_pingpong -d rxe1 -g 1 -n 2000 10.77.0.10 && wait $! && cat "$work/server"
}

expect_status 0 pingpong
check "both sides" test "$(grep -c '^2000 iters' "$work/out")" = 2
check "nothing lost: $(dropped)" test "$(dropped)" = 0
# 2000 messages of 4096 bytes each way: four packets or more each, and all of them are seen on the link.
sent=$(sum /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts) crossed=$(sum /sys/class/net/v0/statistics/tx_packets)
check "rxe0 sent $sent packets" test "$sent" -ge 8000
check "$crossed packets on the link" test "$crossed" -ge 8000

before=$(retries)
set_netem "loss 1%"
expect_status 0 pingpong
check "both sides, with loss" test "$(grep -c '^2000 iters' "$work/out")" = 2
check "lost: $(dropped)" test "$(dropped)" -ge 20
retried=$(($(retries) - before))
check "sent again: $retried" test "$retried" -ge 1
finish
