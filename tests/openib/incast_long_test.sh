#!/bin/bash
# 255 ranks that all send to one over shared queues, which begin with 40 buffers: nobody is left without a processor for so
# long that a connection is given up.
. "$STRATA_SOURCE/tests/openib/lib.sh"
for bytes in 8 4096; do
    try 0 "${openib[@]}" -n 256 "$STRATA_BUILD/tests/programs/crowd" incast $bytes 50 3
    unsaid "255 to 1, $bytes bytes"
    cat "$work/out"
done
# What is sent after a message that waits for a buffer for two thirds of a second may not pass it by more than sequence
# numbers can tell: 40,000 short ones by each of nine ranks, one long one before, and four buffers for those.
for coalesce in 1k 0; do
    try 0 "${openib[@]}" -n 10 --mca btl_openib_rnr_timer 0 --mca pml_ob1_coalesce $coalesce \
        --mca btl_openib_receive_queues P,8448,72,16,64:S,65536,4,1,2 "$STRATA_BUILD/tests/programs/crowd" overtake 8 40000 2
    unsaid "one overtaken, coalesce $coalesce"
done
finish
