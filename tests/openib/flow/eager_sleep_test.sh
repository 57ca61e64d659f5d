#!/bin/bash
# A rank that waits long for a peer with a ring sleeps until it is woken: its rings are revoked, and granted again when there is traffic.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-sleep-$$
pauses=50
for eager in off on; do
    revoked=$([ $eager = off ] && echo 0 || echo 3)
    try 0 "${openib[@]}" --report-transports=json --mca btl_openib_eager_rdma $eager --mca btl_openib_eager_rdma_after 8 -n 2 \
        "$STRATA_BUILD/tests/programs/eager_sleep" $pauses "$revoked"
    sleeps=$(awk '/sleeps in 10 ms/ { print $1 }' "$work/out")
    echo "eager RDMA $eager: $(cat "$work/out"), $(count rings) rings, $(count rings_revoked) revoked"
    # Sleeps of 50 us would be 200 in 10 ms. The kernel may make them fewer, but not twenty times.
    awk -v s="${sleeps:-none}" 'BEGIN { exit !(s + 0 == s && s < 10) }' || complain "eager RDMA $eager: ${sleeps:-none} sleeps in 10 ms"
done
at_least rings 3 "a ring before each long wait"
at_least rings_revoked 3 "long waits"
at_least eager_rdma 60 "rings after long waits"
finish
