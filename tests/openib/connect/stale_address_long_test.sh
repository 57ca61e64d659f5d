#!/bin/bash
# The only port of a rank has another address before the first message than the one it published: of who is asked, who asks, both;
# with LIDs and with GIDs. Datagrams do not find it, sockets do.
. "$STRATA_SOURCE/tests/openib/lib.sh"
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
        rm -f "$work/enough"
        : >"$work/err"
        timeout -k 2 120 "${openib[@]}" --report-transports=json -n 2 "$hostile" later "$work/enough" >"$work/out" 2>"$work/err" &
        job=$!
        said 2 '^running'
        for at in $moved; do move "$at"; done
        enough
        at_least moved 1 "$moved before the first message"
    done
done

# ---- without sockets the one that is asked is not found: which is what the above is about
rm -f "$work/enough"
: >"$work/err"
timeout -k 2 120 "${openib[@]}" --mca btl_openib_connect_fallback 0 --mca btl_openib_connect_timeout_ms 1500 -n 2 \
    "$hostile" later "$work/enough" >"$work/out" 2>"$work/err" &
job=$!
said 2 '^running'
move 1:7
touch "$work/enough"
end nonzero
says 'rank 1 .* failed: .*it does not answer requests for a connection'
finish
