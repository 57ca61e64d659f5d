#!/bin/bash
# Connections of btl_openib on softhca, with processes for ranks: many made at once, and fewer kept than there are peers.
set -u
if [ ! -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] || ! ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1; then
    echo "SKIP: no softhca or no btl_openib in this build (Debian: libibverbs-dev)"
    exit 77
fi
case ${SANITIZER_FLAGS-} in ?*) echo "skipped: a library with sanitizers does not load into a program without" && exit 77 ;; esac
program=$STRATA_BUILD/tests/programs/conformance
export SOFTHCA_FABRIC=connections-$$
status=0
run() { # ranks most-connections case
    local out
    if out=$(timeout -k 5 500 strata-run --softhca -n "$1" --mca btl openib,self --mca btl_openib_max_connected_peers "$2" \
        "$program" "$3" 2>&1) && grep -q "cases passed on $1 ranks" <<<"$out"; then
        echo "$1 ranks, at most $2 connections: $out"
    else
        echo "FAILED: $1 ranks, at most $2 connections: $(tail -n 20 <<<"$out")"
        status=1
    fi
}
run 64 0 all_to_all
run 64 8 all_to_all
run 8 1 ""
run 4 2 ""
exit $status
