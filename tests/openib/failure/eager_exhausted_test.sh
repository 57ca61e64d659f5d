#!/bin/bash
# Memory regions that run out when a ring of eager RDMA is granted, or when a sender needs memory for messages that are not inline: each
# rank has one region more than in the run before, from too few for any ring to enough for all. Each message comes once, and those
# without a ring go by send and receive.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-exhausted-$$
peers=4 rounds=200 batches=3
all=$((peers * rounds * batches)) # messages to rank 0
none=0 few=0 each=0 most=0
incast() { # REGIONS BYTES
    try 0 "SOFTHCA_MAX_MR=$1" "${openib[@]}" --report-transports=json --mca mca_base_verbose 3 --mca btl_openib_eager_rdma on \
        --mca btl_openib_eager_rdma_after 2 -n $((peers + 1)) "$STRATA_BUILD/tests/programs/traffic" incast "$2" $rounds $batches
}
for regions in $(seq 6 40); do
    incast "$regions" 2000
    rings=$(report rank 0 rings) by=$(count eager_rdma) said=$(grep -c 'no memory for another ring of eager RDMA' "$work/err")
    echo "$regions regions: $rings rings at rank 0, $by of $all messages by rings, refused at $said ranks"
    [ "$by" = 0 ] || [ "$rings" -gt 0 ] || complain "$regions regions: $by messages by no ring"
    # Rings that are revoked, as before a long sleep, are granted again: there may be more than peers.
    if [ "$rings" = 0 ]; then
        none=$((none + 1))
    elif [ "$rings" -ge $peers ] && [ "$said" = 0 ]; then
        each=$((each + 1))
        [ "$by" -le "$most" ] || most=$by
    else
        few=$((few + 1))
        [ "$said" -ge 1 ] || complain "$regions regions: $rings rings, and nobody says why"
    fi
    [ $each -lt 2 ] || break
done
{ [ $none -ge 1 ] && [ $few -ge 1 ] && [ $each -ge 1 ]; } || complain "no ring in $none runs, some in $few, all in $each"
[ "$most" -ge $((all / 10)) ] || complain "with enough regions only $most of $all messages went by rings"
finish
