#!/bin/bash
# The cases of two processes on two Soft-RoCE devices with a link between them that loses, doubles and reorders packets.
# guest: --two-devices
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
export VERBS_DEVICE=rxe0 VERBS_PEER_DEVICE=rxe1 VERBS_TIME_LIMIT=60
suite() { # what netem does
    set_netem "$1"
    expect_status 0 bash "$STRATA_SOURCE/tests/verbs/run_suite.sh" "$STRATA_BUILD" processes atomics
    echo "netem $1: $(grep '^VERBS SUITE' "$work/out"), $(dropped) dropped"
}
suite "loss 1%"
check "packets cross the link and are lost" test "$(dropped)" -gt 0
suite "delay 500us reorder 1% duplicate 1%"
finish
