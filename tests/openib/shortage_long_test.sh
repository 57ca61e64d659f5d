#!/bin/bash
# The device gives less than is wanted, or nothing any more.
. "$STRATA_SOURCE/tests/openib/lib.sh"
# ---- a creation that fails once, in the middle of connecting: it is tried again
for fault in 'qp 4' 'qp 5' 'qp 7' 'mr 7' 'mr 9' 'mr 12'; do
    try 0 SOFTHCA_FAULTS="$fault" "${openib[@]}" -n 4 "$hostile" exchange
done
# ---- queue pairs for three or four of seven peers: connections take turns
for most in 7 9; do
    try 0 SOFTHCA_MAX_QP=$most "${openib[@]}" -n 8 "$STRATA_BUILD/tests/programs/crowd" alltoall 1000 5 2
    unsaid "$most queue pairs"
done
# ---- none at all but for datagrams: an error that says so
try nonzero SOFTHCA_MAX_QP=1 "${openib[@]}" --mca btl_openib_connect_timeout_ms 500 -n 2 "$hostile" exchange
says 'no queue pair can be made for it: Cannot allocate memory'
# ---- registrations: long messages go in fragments
for most in 6 10; do
    try 0 SOFTHCA_MAX_MR=$most "${openib[@]}" -n 4 "$hostile" exchange
done
# ---- under load: the device goes, or a completion queue is overrun; by name
under_load() { # FAULT MESSAGE
    local rank=
    export SOFTHCA_FABRIC=openib-load-$$
    timeout -k 2 $limit "${openib[@]}" -n 2 "$hostile" long openib-load >"$work/out" 2>"$work/err" &
    for _ in $(seq 100); do
        grep -q 'running' "$work/err" && rank=$(pgrep -f "^[^ ]*hostile long openib-load" | head -1) && break
        sleep 0.1
    done
    softhca-stat --fault "$rank" "$1" >"$work/stat" 2>&1 || complain "no rank to be troubled by $1: $(cat "$work/stat")"
    wait $!
    status=$?
    { [ $status != 0 ] && [ $status != 124 ]; } || complain "status $status after $1"
    says "$2"
    unset SOFTHCA_FABRIC
}
under_load 'device soft0 gone' 'the device has failed'
under_load 'overrun 20' 'a completion queue was overrun|CQ error'
finish
