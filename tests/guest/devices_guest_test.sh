#!/bin/bash
# One guest with two devices: packets between them cross a link, where they can get lost and are sent again.
. "$STRATA_SOURCE/tests/guest/lib.sh"

cat >"$work/pingpong" <<'END'
ibv_rc_pingpong -d rxe0 -g 1 -n 2000 >/tmp/server 2>&1 &
for i in $(seq 100); do ss -ltn | grep -q ":18515 " && break; sleep 0.1; done
ibv_rc_pingpong -d rxe1 -g 1 -n 2000 10.77.0.10 && wait $! && cat /tmp/server
status=$?
echo "dropped $(tc -s qdisc show | grep -o 'dropped [0-9]*' | awk '{ n += $2 } END { print n }')"
cat /sys/class/infiniband/rxe[01]/ports/1/hw_counters/completer_retry_err | awk '{ n += $1 } END { print "retried", n }'
cat /sys/class/infiniband/rxe[01]/ports/1/hw_counters/sent_pkts | awk '{ print "sent", $1 }'
cat /sys/class/net/v0/statistics/tx_packets | awk '{ print "link", $1 }'
exit $status
END
counted() { awk -v what="$1" '$1 == what { print $2; exit }' "$work/out"; }

expect_status 0 "$guest" --two-devices bash "$work/pingpong"
check "both sides" test "$(grep -c '^2000 iters' "$work/out")" = 2
check "nothing lost: $(counted dropped)" test "$(counted dropped)" = 0
# 2000 messages of 4096 bytes each way: four packets or more each, and all of them are seen on the link.
check "rxe0 sent $(counted sent) packets" test "$(counted sent)" -ge 8000
check "$(counted link) packets on the link" test "$(counted link)" -ge 8000

expect_status 0 "$guest" --netem "loss 1%" bash "$work/pingpong"
check "both sides, with loss" test "$(grep -c '^2000 iters' "$work/out")" = 2
check "lost: $(counted dropped)" test "$(counted dropped)" -ge 20
check "sent again: $(counted retried)" test "$(counted retried)" -ge 1
no_files
finish
