#!/bin/bash
# The only port of a rank changes its address after it was published and before the first message: the port of the rank that is asked for
# the connection, of the one that asks, of both; with LIDs and with GIDs. Datagrams do not arrive, sockets connect.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "GIDs$(form " and one case of three with LIDs" " and LIDs")"
snapshot
export SOFTHCA_FABRIC=openib-early-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
move() { # RANK:ADDRESS
    local pid
    for pid in $(pgrep -f "^[^ ]*hostile later $work/enough"); do
        ! grep -qz "^PMIX_RANK=${1%:*}$" "/proc/$pid/environ" || fault "$pid" "address soft0 1 ${1#*:}"
    done
}
for link in ib roce; do
    export SOFTHCA_LINK=$link
    for moved in 1:7 0:7 "0:7 1:8"; do
        [ $link = roce ] || [ "$moved" = 1:7 ] || full_form || continue
        rm -f "$work/enough"
        : >"$work/err"
        timeout -k 2 600 "${openib[@]}" --report-transports=json -n 2 "$hostile" later "$work/enough" >"$work/out" 2>"$work/err" &
        job=$!
        said 2 '^running'
        for at in $moved; do move "$at"; done
        enough
        at_least moved 1 "$moved before the first message"
    done
done

# ---- without sockets the rank that is asked is not found, which proves the cases above
rm -f "$work/enough"
: >"$work/err"
timeout -k 2 600 "${openib[@]}" --mca btl_openib_connect_fallback 0 --mca btl_openib_connect_timeout_ms 1500 -n 2 \
    "$hostile" later "$work/enough" >"$work/out" 2>"$work/err" &
job=$!
said 2 '^running'
move 1:7
touch "$work/enough"
end nonzero
says 'rank 1 .* failed: .*it does not answer requests for a connection'
finish
