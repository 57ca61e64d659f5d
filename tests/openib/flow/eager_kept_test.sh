#!/bin/bash
# Unexpected messages stay in the slots of their ring (tests/programs/kept.c): received in any order they are what was sent, with each
# detection and with small rings; beyond the bound, when the ring is revoked, when the peer is killed, and where nobody receives them.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-kept-$$
rounds=$(form 20 200)
say_form "$rounds rounds"
kept() { # WANTED-STATUS WHAT PARAMETER VALUE...
    local wanted=$1 what=$2 set=() more=()
    shift 2
    while [ $# -gt 0 ]; do
        set+=(--mca "btl_openib_$1" "$2")
        shift 2
    done
    [ "$what" != killed ] || more=(--keep-going)
    # Short messages in a row would leave the ring.
    try "$wanted" "${openib[@]}" ${more[@]+"${more[@]}"} --mca btl_openib_coalesce_at 0 --mca btl_openib_eager_rdma_after 2 \
        ${set[@]+"${set[@]}"} -n 2 "$STRATA_BUILD/tests/programs/kept" "$what" "$rounds"
    grep -q '^rank 1: all received$' "$work/out" || complain "$what ${set[*]}: rank 1 has not received all"
    echo "$what ${set[*]}: $(counter eager_rdma_kept) kept, $(counter eager_rdma_copied) of them copied"
}
counter() { # NAME: at rank 1
    awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$work/out"
}
some() { # NAME
    [ "$(counter "$1")" -gt 0 ] || complain "no message is counted as $1"
}
none() { # NAME
    [ "$(counter "$1")" = 0 ] || complain "$(counter "$1") messages are counted as $1"
}

for detect in flag seal imm; do
    kept 0 any eager_rdma on eager_rdma_detect $detect
    some eager_rdma_kept
    some eager_rdma_copied
    kept 0 any eager_rdma on eager_rdma_detect $detect eager_rdma_slots 9 eager_rdma_slot 128
    kept 0 finalize eager_rdma on eager_rdma_detect $detect
    some eager_rdma_kept
done
kept 0 any eager_rdma on eager_rdma_slots 3
none eager_rdma_kept
kept 0 any eager_rdma off
none eager_rdma_kept

rounds=5
# The ring is revoked while rank 1 sleeps.
kept 0 quiet eager_rdma on eager_rdma_slots 128
some rings_revoked
some eager_rdma_kept
some eager_rdma_copied
crash_wanted=1 # rank 0 is killed
kept 137 killed eager_rdma on
some eager_rdma_kept
finish
