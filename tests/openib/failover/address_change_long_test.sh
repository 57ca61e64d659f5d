#!/bin/bash
# A port comes up with another address than it went down with, under load: the other end learns the address and connects to it; at
# either end, with LIDs and with GIDs. At both ends at once: messages about connections take another way than these ports.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
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
say_form "$(form "two of three" "three") changes with LIDs and with GIDs"

for link in ib roce; do
    export SOFTHCA_LINK=$link
    begin "${retry[@]}"
    moves 1 0:3
    moves 2 1:4
    ! full_form || moves 3 0:0
    enough
    failed_at 2
done
# ---- both ends at once: neither finds the other by its port
begin "${retry[@]}" # RoCE
moves 1 0:5 1:6
! full_form || moves 2 0:0 1:0
enough
failed_at 2
unset SOFTHCA_LINK
if full_form; then
    begin "${retry[@]}"
    moves 1 0:5 1:6
    enough
    failed_at 2
fi
begin "${retry[@]}" --mca btl_openib_connect tcp
moves 1 0:5 1:6
enough
failed_at 2

# ---- a connection was closed because others are in use, and its other end has moved: a rank that asks for it again knows the address
export SOFTHCA_DEVICES=1
rm -f "$work/enough"
in_background timeout -k 2 600 "${openib[@]}" --report-transports=json --mca btl_openib_max_connected_peers 1 -n 4 \
    "$hostile" turns "$work/enough"
said 1 '^running'
for pid in $(pgrep -f "^[^ ]*hostile turns $work/enough"); do
    ! grep -qz '^PMIX_RANK=1$' "/proc/$pid/environ" || fault "$pid" 'address soft0 1 7'
done
said 1 'has another address now'
sleep 0.3 # so that rank 0 learns the address before it asks; on a busy machine it may ask first, and learns it then
enough
[ "$(count moved)" = 1 ] || complain "$(count moved) ranks have learned another address, not 1"
finish
