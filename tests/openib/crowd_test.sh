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
finish
