#!/bin/bash
# Two devices in one process: traffic over both, and what is mixed is refused. With a real device: real_device_guest_test.sh.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/device/two_devices
[ -x "$program" ] || skip "not built: libibverbs is missing"
export SOFTHCA_DEVICES=2
single 60 'soft0 and soft1: 400 messages each' "$program" soft0 soft1
SOFTHCA_LINK=roce single 60 'soft1 and soft0: 400 messages each' "$program" soft1 soft0
finish
