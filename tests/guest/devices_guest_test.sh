#!/bin/bash
# One guest with two devices: packets between them cross a link, where they can get lost and are sent again.
# guest: --two-devices
. "$STRATA_SOURCE/tests/guest/lib.sh"

sum() { cat "$@" | awk '{ n += $1 } END { print n }'; } # FILE...
retries() { sum /sys/class/infiniband/rxe[01]/ports/1/hw_counters/completer_retry_err; }
# Messages of 4096 bytes from rxe1 to rxe0 and back. A side whose peer has failed would wait for ever.
pingpong() { # ARG OF ib_send_lat...
    local server status=0
    timeout 300 ib_send_lat -d rxe0 -x 1 -F -s 4096 "$@" >"$work/server" 2>&1 &
    server=$!
    for _ in $(seq 600); do
        ! ss -ltn | grep -q ":18515 " || break
        sleep 0.1
    done
    timeout 300 ib_send_lat -d rxe1 -x 1 -F -s 4096 "$@" 10.77.0.10 || status=$?
    [ $status = 0 ] || kill $server
    wait $server && cat "$work/server" && return $status
}
rows() { grep -cE "^ *4096 +$1 +[0-9.]+ " "$work/out"; } # ITERATIONS

# The time-out is 4 s: on a busy machine acknowledgements come later than the default of 67 ms, and Soft-RoCE answers a request that is
# sent again with "remote invalid request" now and then.
expect_status 0 pingpong -n 2000 -u 20
check "both sides" test "$(rows 2000)" = 2
check "nothing lost: $(dropped)" test "$(dropped)" = 0
# 2000 messages of 4096 bytes each way: four packets or more each, and all of them are seen on the link.
sent=$(sum /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts) crossed=$(sum /sys/class/net/v0/statistics/tx_packets)
check "rxe0 sent $sent packets" test "$sent" -ge 8000
check "$crossed packets on the link" test "$crossed" -ge 8000

# Lost packets are sent again, so the fault above may end a run; not each of five.
before=$(retries)
set_netem "loss 1%"
for _ in 1 2 3 4 5; do
    run pingpong -n 1000 -u 16
    [ "$status" != 0 ] || break
    echo "with loss: status $status: $(grep -i -m 1 status "$work/out" "$work/err" "$work/server")"
done
check "both sides, with loss" test "$(rows 1000)" = 2
check "lost: $(dropped)" test "$(dropped)" -ge 20
retried=$(($(retries) - before))
check "sent again: $retried" test "$retried" -ge 1
finish
