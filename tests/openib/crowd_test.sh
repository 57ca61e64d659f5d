#!/bin/bash
# Many ranks at a time over shared receive queues and queues per peer: more messages than there are buffers or credits for.
. "$STRATA_SOURCE/tests/openib/lib.sh"
for queues in "$peer" "$shared" "$short"; do
    crowd "$queues" 8 alltoall 4096 5 2
    crowd "$queues" 24 incast 64 20 2
done
# Both sides send before either receives, with two credits each: what returns credits needs none.
for queues in "$poor" "$poor_peer"; do
    crowd "$queues" 2 flood 1000 300 2
    crowd "$queues" 4 flood 20000 50 2
done
# A shared queue grows when it is short, but to no more than the one peer may have under way: 64 messages, two of control.
try 0 "${openib[@]}" --report-transports=json -n 2 "$STRATA_BUILD/tests/programs/crowd" flood 1000 300 2
unsaid_but_reports "flood"
n=$(count receives_high)
[ "$n" -gt 64 ] && [ "$n" -le 132 ] || complain "$n buffers in both shared queues, not 65 to 132"
# One that has all it may have runs short, and is not said to have grown.
try 0 "${openib[@]}" --report-transports=json --mca btl_openib_receive_queues "$short" -n 8 \
    "$STRATA_BUILD/tests/programs/crowd" incast 1000 50 4
[ "$(count receives_high)" = 128 ] && [ "$(count grown)" = 0 ] || complain "said to have grown $(count grown) times"
# Messages that are taken from where they are, by connections that come and go: each ends, and none with an error.
try 0 "${openib[@]}" --report-transports=json --mca btl_openib_max_connected_peers 2 -n 6 \
    "$STRATA_BUILD/tests/programs/crowd" alltoall 16000 40 4
unsaid_but_reports "connections that come and go"
at_least zcopy 500 "messages of 16000 bytes"
at_least torn_down 20 "six ranks with two connections each"
# What was sent by low priority is seen long after the peer's word that it closes: nothing is lost with the connection.
try 0 SOFTHCA_FAULTS="stall 20" "${openib[@]}" --report-transports=json --mca btl_openib_max_connected_peers 2 -n 6 \
    "$STRATA_BUILD/tests/programs/crowd" alltoall 16000 20 1
unsaid_but_reports "completions that come late"
at_least torn_down 20 "six ranks with two connections each, completions that come late"
finish
