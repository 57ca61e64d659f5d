#!/bin/bash
# Programs of the distribution on the guest's Soft-RoCE device: that it is there and carries traffic.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"

expect_status 0 ibv_devices
out_has "rxe0"
check "one device" test "$(grep -c rxe "$work/out")" = 1
expect_status 0 ibv_devinfo -v -d rxe0
out_has "PORT_ACTIVE"; out_has "link_layer:.*Ethernet"; out_has "GID\[ *1\]:.*::ffff:10.77.0.10, RoCE v2"

expect_status 0 both ibv_rc_pingpong -d rxe0 -g 1
check "both sides of ibv_rc_pingpong" test "$(grep -c '^1000 iters' "$work/out")" = 2
expect_status 0 both ibv_ud_pingpong -d rxe0 -g 1
check "both sides of ibv_ud_pingpong" test "$(grep -c '^1000 iters' "$work/out")" = 2
expect_status 0 both ib_send_lat -d rxe0 -x 1 -F -n 500
check "a row of ib_send_lat" grep -Eq '^ *2 +500 +[0-9.]+ ' "$work/out"
expect_status 1 ibv_rc_pingpong -d rxe1 -g 1; err_has "rxe1 not found"
finish
