#!/bin/bash
# Connections of btl_openib on softhca, with processes for ranks: many made at once, and fewer kept than there are peers.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=300
at_once 64 ud 0
at_once 64 ud 8
few() { # RANKS MOST-CONNECTIONS
    try 0 "${openib[@]}" -n "$1" --mca btl_openib_max_connected_peers "$2" "$STRATA_BUILD/tests/programs/conformance"
    grep -q "cases passed on $1 ranks" "$work/out" || complain "$1 ranks, at most $2 connections: $(cat "$work/out")"
}
few 8 1
few 4 2
finish
