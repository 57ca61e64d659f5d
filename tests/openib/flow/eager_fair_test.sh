#!/bin/bash
# A ring of eager RDMA that floods while another has one message (tests/programs/eager_fair.c): the message comes before 256 later ones of
# the flood, in each order of polling, whether its ring is quiet or not, and where completions say what has come.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-fair-$$
# A round on all rings comes after 32 messages of the first one. It takes 16 from each and from the completion queue; before one of
# these all older ones in the ring of 106 slots.
trials=$(form 60 200) most=256
say_form "$trials messages in each setting"
fair() { # PARAMETER VALUE...
    local set=() what="$*"
    while [ $# -gt 1 ]; do
        set+=(--mca "btl_openib_eager_rdma_$1" "$2")
        shift 2
    done
    try 0 "${openib[@]}" --report-transports=json --mca btl_openib_eager_rdma on ${set[@]+"${set[@]}"} -n 3 \
        "$STRATA_BUILD/tests/programs/eager_fair" $trials $most
    at_least rings 2 "$what"
    # The flood's ring is often full; the other one never is.
    [ "$(report rank 1 eager_rdma)" -ge $((10 * trials)) ] || complain "$what: $(report rank 1 eager_rdma) messages of the flood went by its ring"
    [ "$(report rank 2 eager_rdma)" -ge $trials ] || complain "$what: $(report rank 2 eager_rdma) of $trials messages went by the other ring"
    echo "$what: $(cat "$work/out") of at most $most; $(report rank 1 eager_rdma) messages of the flood by its ring"
}
for order in prioritised sequential circular; do
    fair order $order
    fair order $order lively 1
done
fair detect imm
finish
