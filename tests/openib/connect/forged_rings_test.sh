#!/bin/bash
# A rank sends footers, grants and farewells of eager RDMA that cannot be: a footer ends the job with an error that names the rank; a
# grant is dropped with a warning that does, and messages go by send and receive; a farewell to another ring, and what is written
# after a farewell, change nothing. Nothing crashes. components/btl_openib/tests/ring_forged_test.c has the cases without an end.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_FABRIC=openib-forged-rings-$$
preload=$STRATA_BUILD/tests/openib/connect/.libs/forge_rings.so
[ -e "$preload" ] || { echo "SKIP: not built: the verbs suite is missing"; exit 77; }
more=()
run_forged() { # WANTED-STATUS WHAT RANK PROGRAM...
    # The rank that sees it says so, also when the other one ends first. Keepalive's writes, which have no segment, pass unchanged.
    differently FORGE_RINGS '"$FORGERY"' "$3"
    try "$1" "FORGERY=$2" "${openib[@]}" ${more[@]+"${more[@]}"} --keep-going --mca btl_openib_eager_rdma on \
        --mca btl_openib_eager_rdma_after 1 --mca btl_openib_keepalive_ms 1 -n 2 "$work/differently" \
        env "LD_PRELOAD=$preload:$STRATA_BUILD/softhca/.libs/libsofthca.so" "$STRATA_BUILD/tests/programs/$4" "${@:5}"
    says "forged $2"
}
forged() { # WANTED-STATUS WHAT SAID
    run_forged "$1" "$2" 1 numbered 2000
    says "$3"
    says 'rank 1'
    echo "$2: $(grep -m 1 -E "$3" "$work/err")"
}
for what in length header client; do forged nonzero $what 'a message in its ring of eager RDMA makes no sense'; done
for what in ahead behind; do forged nonzero $what 'the number of a message in its ring of eager RDMA makes no sense'; done
forged nonzero slots 'it returns more slots of a ring of eager RDMA than were in use'
forged nonzero credits 'it returns more credits than it was given messages'
for what in slots first size detect; do forged 0 grant-$what 'a control message about eager RDMA that makes no sense'; done
# The device refuses the write.
forged nonzero grant-key 'rank [01] .*failed'

# Rank 1 waits long for rank 0, and revokes its ring. Every number is checked.
farewell() { # WHAT RINGS: granted and revoked at least
    run_forged 0 "$1" 0 eager_sleep 50 "$2"
    ! grep -v -e '^forged ' -e '^{' "$work/err" || complain "$1 causes messages"
    at_least rings_revoked "$2" "$1"
    echo "$1: $(count rings) rings, $(count rings_revoked) revoked, $(grep -c '^forged' "$work/err") forged"
}
more=(--report-transports=json)
farewell farewell-word 1
farewell farewell-writes 3
finish
