#!/bin/bash
# Memory of a peer that becomes hot (tests/programs/eager_memory.c): a ring of 64 KiB for each direction by default, or what the parameters
# say; of one that is not hot: what it is with eager RDMA off. By mem_report, and by the kernel's count of pages.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-footprint-$$
ranks=9 hot=4 spread=98304 # bytes of the heap by which runs differ
stages() { # NAME PLACES RING PARAMETERS...: see hot_peers
    local name=$1 places=$2 ins=$((ranks - 1 < $2 ? ranks - 1 : $2))
    try 0 "${openib[@]}" -n $ranks --mca btl_openib_eager_rdma_peers "$places" "${@:4}" \
        "$STRATA_BUILD/tests/programs/eager_memory" $hot $((ins * $3))
    cp "$work/out" "$work/stages.$name"
    echo "$name (rings, btl_openib but registered buffers, shared pages, anonymous memory):" && cat "$work/stages.$name"
}
# Growth of a column of a run between two stages, bytes: 1 rings, 2 btl_openib but registered buffers, 3 shared pages, 4 anonymous.
grown() { # NAME FROM TO COLUMN
    awk -F: -v from="$2" -v to="$3" -v column="$4" '{ split($2, f, " "); at[$1] = f[column] }
        END { if (from in at && to in at) print at[to] - at[from] }' "$work/stages.$1"
}
within() { # WHAT BYTES LEAST MOST
    echo "$1: $2 bytes, $3 to $4"
    { [ -n "$2" ] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; } || complain "$1: ${2:-no} bytes, not $3 to $4"
}

# The same of anonymous memory, beyond what it is without eager RDMA.
beyond() { # NAME FROM TO
    echo $(($(grown "$1" "$2" "$3" 4) - $(grown off "$2" "$3" 4)))
}
# PLACES of the polling set, and RING bytes of each direction, of which a staging ring has those that were written to.
hot_peers() {
    local name=$1 ring=$3 others=$((ranks - 1)) in=$((hot < $2 ? hot : $2)) ins=$((ranks - 1 < $2 ? ranks - 1 : $2))
    within "$name: $others peers that are not hot, rings" "$(grown "$name" idle connected 1)" 0 0
    within "$name: the same, shared pages" "$(grown "$name" idle connected 3)" 0 0
    within "$name: the same, btl_openib beyond what it is without" "$(($(grown "$name" idle connected 2) - $(grown off idle connected 2)))" 0 0
    within "$name: $hot that send short messages" "$(grown "$name" connected in 1)" $((in * ring * 9 / 10)) $((in * ring))
    within "$name: $hot that send longer ones, more" "$(grown "$name" in 'in long' 1)" 0 0
    within "$name: $hot that get short ones, more" "$(grown "$name" 'in long' out 1)" 0 0
    within "$name: $hot hot both ways" "$(grown "$name" connected 'out long' 1)" $(((in + hot) * ring * 9 / 10)) $(((in + hot) * ring))
    within "$name: the same, shared pages" "$(grown "$name" connected 'out long' 3)" $((in * ring * 9 / 10)) $((in * ring))
    within "$name: $others hot both ways" "$(grown "$name" connected others 1)" $(((ins + others) * ring * 9 / 10)) $(((ins + others) * ring))
    within "$name: the same, anonymous memory" "$(beyond "$name" connected others)" -$spread $((others * ring + spread))
    within "$name: nobody hot" "$(grown "$name" connected cold 1)" 0 $((ins * ring))
    within "$name: the same, shared pages" "$(grown "$name" connected cold 3)" 0 $((ins * ring))
    within "$name: the same, anonymous memory" "$(beyond "$name" connected cold)" -$spread $spread
    within "$name: $hot hot again" "$(grown "$name" connected again 1)" $(((in + hot) * ring * 9 / 10)) $(((ins + hot) * ring))
}

stages off 16 0 --mca btl_openib_eager_rdma off
stages on 16 65536 --mca btl_openib_eager_rdma on
stages few 2 65536 --mca btl_openib_eager_rdma on
stages small 16 20480 --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_slots 25 --mca btl_openib_eager_rdma_slot 576
for stage in connected in "in long" out "out long" others cold again; do
    within "off, $stage: rings" "$(grown off idle "$stage" 1)" 0 0
done
hot_peers on 16 65536
hot_peers few 2 65536
# 25 slots and 7 more for the longest message below them: 18432 bytes, in pages.
hot_peers small 16 20480
finish
