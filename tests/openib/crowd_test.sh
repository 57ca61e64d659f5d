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
# A shared queue grows when it is short, but to no more than the one peer may have under way: 32 messages, two of control.
try 0 "${openib[@]}" --report-transports=json -n 2 "$STRATA_BUILD/tests/programs/crowd" flood 1000 300 2
unsaid_but_reports "flood"
n=$(count receives_high)
[ "$n" -gt 64 ] && [ "$n" -le 68 ] || complain "$n buffers in both shared queues, not 66 to 68"
finish
