#!/bin/bash
# Who uses rings of eager RDMA. auto: what the device was found to do decides, and is said; messages are right either way. A rank where
# it is off returns the ring that it is granted, so that another peer gets the place. A peer that the user names gets it at once.
# Where messages go in a row they leave the ring, unless nothing is coalesced.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
in_row=(--mca btl_openib_coalesce_at 0)
export SOFTHCA_FABRIC=openib-eager-choice-$$
numbered=$STRATA_BUILD/tests/programs/numbered

for short in 33072 0; do
    try 0 SOFTHCA_SHORT=$short "${openib[@]}" --report-transports=json --mca mca_base_verbose 3 --mca btl_openib_eager_rdma auto -n 2 "$numbered" 2000
    says 'a write takes [1-9][0-9]* ns, a send [1-9][0-9]* ns'
    # Each rank decides for itself, and once.
    yes=$(grep -c 'ns: hot peers get rings' "$work/err") no=$(grep -c 'ns: no rings' "$work/err")
    [ $((yes + no)) = 2 ] || complain "auto, SOFTHCA_SHORT=$short: $((yes + no)) ranks have measured, not 2"
    if [ "$yes" = 0 ]; then
        [ "$(count eager_rdma)" = 0 ] || complain "auto, SOFTHCA_SHORT=$short: $(count eager_rdma) messages by rings that nobody wants"
    else
        at_least eager_rdma 100 "auto, SOFTHCA_SHORT=$short"
    fi
    echo "auto, SOFTHCA_SHORT=$short: $(grep -m 1 -o 'a write takes.*' "$work/err"); $(count eager_rdma) of 4000 messages by rings"
done

# One place, and two senders of which one does not want it: the other one gets it, whoever was first.
differently STRATA_MCA_btl_openib_eager_rdma off
for _ in 1 2 3; do
    try 0 "${openib[@]}" "${in_row[@]}" --report-transports=json --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_peers 1 \
        --mca btl_openib_eager_rdma_after 2 -n 3 "$work/differently" "$STRATA_BUILD/tests/programs/traffic" incast 64 1000 2
    by=$(report rank 2 eager_rdma)
    [ "$by" -ge 100 ] || complain "of rank 2 only $by of 3000 messages went by the ring that rank 1 does not want"
    [ "$(report rank 1 eager_rdma)" = 0 ] || complain "rank 1 has used a ring, though it is off there"
done
echo "one place, one sender that is off: $by of 3000 messages of the other by the ring"

# The user's hint: the rank that it names has a ring from its first message on, although eager_rdma_after is out of reach.
try 0 "${openib[@]}" "${in_row[@]}" --report-transports=json --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_peers 1 \
    --mca btl_openib_eager_rdma_after 1000000 --mca btl_openib_eager_rdma_hot 2-7 -n 3 "$STRATA_BUILD/tests/programs/traffic" incast 64 1000 2
by=$(report rank 2 eager_rdma)
[ "$by" -ge 100 ] || complain "of rank 2, which is named, only $by of 3000 messages went by the ring"
[ "$(report rank 1 eager_rdma)" = 0 ] || complain "rank 1, which is not named, has used a ring"
echo "one place, rank 2 named: $by of its 3000 messages went by the ring"
# Two are named for one place: evictions need a margin of messages, so that they do not take it from each other with each one.
try 0 "${openib[@]}" "${in_row[@]}" --report-transports=json --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_peers 1 \
    --mca btl_openib_eager_rdma_hot 1-2 -n 3 "$STRATA_BUILD/tests/programs/traffic" incast 64 1000 2
[ "$(count rings_revoked)" -le 400 ] || complain "two named, one place: $(count rings_revoked) evictions in 6000 messages"
echo "one place, two named: $(count rings_revoked) evictions in 6000 messages"
try 1 "${openib[@]}" --mca btl_openib_eager_rdma_hot 1,x -n 2 "$numbered" 1
says 'btl_openib_eager_rdma_hot: expected ranks such as 0,4-7 at "x"'
finish
