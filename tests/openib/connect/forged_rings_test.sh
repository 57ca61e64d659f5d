#!/bin/bash
# Rank 1 sends footers and grants of eager RDMA that cannot be: a footer ends the job with an error that names the rank; a
# grant is dropped with a warning that does, and messages go by send and receive. Nothing crashes.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_FABRIC=openib-forged-rings-$$
preload=$STRATA_BUILD/tests/openib/connect/.libs/forge_rings.so
[ -e "$preload" ] || { echo "SKIP: not built: the verbs suite is missing"; exit 77; }
differently FORGE_RINGS '"$FORGERY"'
forged() { # WANTED-STATUS WHAT SAID
    # The rank that sees it says so, also when the other one ends first. Keepalive's writes, which have no segment, pass unchanged.
    try "$1" "FORGERY=$2" "${openib[@]}" --keep-going --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_after 1 \
        --mca btl_openib_keepalive_ms 1 -n 2 "$work/differently" \
        env "LD_PRELOAD=$preload:$STRATA_BUILD/softhca/.libs/libsofthca.so" "$STRATA_BUILD/tests/programs/numbered" 2000
    says "forged $2"
    says "$3"
    says 'rank 1'
    echo "$2: $(grep -m 1 -E "$3" "$work/err")"
}
for what in length header client; do forged nonzero $what 'a message in its ring of eager RDMA makes no sense'; done
forged nonzero slots 'it returns more slots of a ring of eager RDMA than were in use'
forged nonzero credits 'it returns more credits than it was given messages'
for what in slots first size detect; do forged 0 grant-$what 'a control message about eager RDMA that makes no sense'; done
# The device refuses the write.
forged nonzero grant-key 'rank [01] .*failed'
finish
