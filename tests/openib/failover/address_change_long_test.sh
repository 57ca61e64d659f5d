#!/bin/bash
# A port comes up with another address than it went down with, under load: the other end learns of it and connects to that; at
# either end, with LIDs and with GIDs. At both ends at once: messages about connections go another way than by these ports.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_DEVICES=2 SOFTHCA_FABRIC=openib-address-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
moves() { # NTH-TIME RANK:ADDRESS...: soft0 of these ranks
    local nth=$1 at
    shift
    for at; do fault "${ranks[${at%:*}]}" 'port soft0 1 down'; done
    said $((2 * nth)) 'path 0 of 2 to rank [01] by openib failed'
    for at; do fault "${ranks[${at%:*}]}" "address soft0 1 ${at#*:}"; done
    for at; do fault "${ranks[${at%:*}]}" 'port soft0 1 up'; done
    said $((2 * nth)) 'path 0 of 2 to rank [01] works again'
}
retry=(--mca pml_ob1_path_retry_ms 100)

for link in ib roce; do
    export SOFTHCA_LINK=$link
    begin "${retry[@]}"
    moves 1 0:3
    moves 2 1:4
    moves 3 0:0
    enough
    failed_at 2
done
# ---- both ends at once: neither finds the other by its port
begin "${retry[@]}" # RoCE
moves 1 0:5 1:6
moves 2 0:0 1:0
enough
failed_at 2
unset SOFTHCA_LINK
begin "${retry[@]}"
moves 1 0:5 1:6
enough
failed_at 2
begin "${retry[@]}" --mca btl_openib_connect tcp
moves 1 0:5 1:6
enough
failed_at 2

# ---- a connection that was closed since others are in use, and whose end has moved: whoever asks for it again knows
export SOFTHCA_DEVICES=1
rm -f "$work/enough"
in_background timeout -k 2 120 "${openib[@]}" --report-transports=json --mca btl_openib_max_connected_peers 1 -n 4 \
    "$hostile" turns "$work/enough"
said 1 '^running'
for pid in $(pgrep -f "^[^ ]*hostile turns $work/enough"); do
    ! grep -qz '^PMIX_RANK=1$' "/proc/$pid/environ" || fault "$pid" 'address soft0 1 7'
done
sleep 1
enough
[ "$(count moved)" = 1 ] || complain "$(count moved) ranks have heard of another address, not 1"
finish
