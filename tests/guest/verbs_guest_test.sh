#!/bin/bash
# Programs of the distribution on the guest's Soft-RoCE device: that it is there and carries traffic.
. "$STRATA_SOURCE/tests/guest/lib.sh"

expect_status 0 "$guest" ibv_devices
out_has "rxe0"
check "one device" test "$(grep -c rxe "$work/out")" = 1
expect_status 0 "$guest" ibv_devinfo -v -d rxe0
out_has "PORT_ACTIVE"; out_has "link_layer:.*Ethernet"; out_has "GID\[ *1\]:.*::ffff:10.77.0.10, RoCE v2"

# A server in the background, a client, and the status of both.
both='"$@" >/tmp/server 2>&1 & for i in $(seq 100); do ss -ltn | grep -q ":18515 " && break; sleep 0.1; done
    "$@" localhost && wait $! && cat /tmp/server'
expect_status 0 "$guest" bash -c "$both" both ibv_rc_pingpong -d rxe0 -g 1
check "both sides of ibv_rc_pingpong" test "$(grep -c '^1000 iters' "$work/out")" = 2
expect_status 0 "$guest" bash -c "$both" both ibv_ud_pingpong -d rxe0 -g 1
check "both sides of ibv_ud_pingpong" test "$(grep -c '^1000 iters' "$work/out")" = 2
expect_status 0 "$guest" bash -c "$both" both ib_send_lat -d rxe0 -x 1 -F -n 500
check "a row of ib_send_lat" grep -Eq '^ *2 +500 +[0-9.]+ ' "$work/out"
expect_status 1 "$guest" ibv_rc_pingpong -d rxe1 -g 1; err_has "rxe1 not found"
no_files
finish
