#!/bin/bash
# Channels beside strata_send and the raw transport, over shared memory and softhca. Started by `make bench-channel`; ROUNDS turns.
set -u
rounds=${ROUNDS:-5}
echo "load $(cut -d' ' -f1 /proc/loadavg) on $(nproc) processors"
for btl in sm openib; do
    with=()
    [ $btl = sm ] || with=(--softhca)
    [ $btl = sm ] || [ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] || { echo "openib: not measured, no softhca in this build"; continue; }
    echo "## $btl"
    strata-run ${with[@]+"${with[@]}"} -n 2 --mca btl "self,$btl" "$STRATA_BUILD/bench/channel" "$rounds" || exit 1
done
