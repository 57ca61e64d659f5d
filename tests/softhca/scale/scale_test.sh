#!/bin/bash
# A few processes, all connected with all: a message over each of 8,160 queue pairs, the bytes that an idle one takes, what the
# others see when some are killed in the middle of traffic, and that nothing stays when all are.
. "$STRATA_SOURCE/tests/softhca/scale/lib.sh" || exit 1
scaled 60 16 34 exchange
scaled 60 16 4 kill 1
scaled 60 16 8 kill 5
scaled 60 6 1 kill 5
kill_all traffic 16 8
for moment in 0.02 0.05 0.1 0.2; do kill_all $moment 16 34; done
finish
