#!/bin/bash
# The device gives less than is wanted, or nothing any more.
. "$STRATA_SOURCE/tests/openib/lib.sh"
# ---- a creation that fails once, in the middle of connecting: it is tried again
for fault in 'qp 2' 'qp 4' 'qp 5' 'qp 7' 'mr 7' 'mr 9' 'mr 12'; do
    try 0 SOFTHCA_FAULTS="$fault" "${openib[@]}" -n 4 "$hostile" exchange
done
# ---- queue pairs for three or four of seven peers: connections take turns
for most in 7 9; do
    try 0 SOFTHCA_MAX_QP=$most "${openib[@]}" -n 8 "$STRATA_BUILD/tests/programs/crowd" alltoall 1000 5 2
    unsaid "$most queue pairs"
done
# ---- receive buffers of their own for two of four peers: attempts that fail give back what they have posted
try 0 SOFTHCA_MEMLOCK=1600k "${openib[@]}" --mca btl_openib_receive_queues "$peer" -n 4 "$STRATA_BUILD/tests/programs/cycles" 20
unsaid 'little memory for receive queues per peer'
try 0 SOFTHCA_FAULTS='qp 5' "${openib[@]}" --mca btl_openib_receive_queues "$peer" -n 3 "$STRATA_BUILD/tests/programs/cycles" 1
holds() { sed -n 's/^.*rank 0 holds \([0-9]*\) kB.*/\1/p' "$work/out"; }
with=$(holds)
try 0 "${openib[@]}" --mca btl_openib_receive_queues "$peer" -n 3 "$STRATA_BUILD/tests/programs/cycles" 1
without=$(holds)
# What an attempt posts is 256 KiB and more; a few requests more or less are the order of messages.
[ "${with:-99999999}" -lt $((without + 64)) ] ||
    complain "rank 0 holds $with kB after a queue pair that could not be made, else $without kB"
# ---- queues are made as long as the device allows, whatever doubling comes to
try 0 SOFTHCA_MAX_CQE=300 "${openib[@]}" --report-transports=json -n 9 "$STRATA_BUILD/tests/programs/cycles" 1
at_least connected 16 'completion queues of 300'
[ "$(count torn_down)" = 0 ] || complain "eight connections do not fit 300 completions"
# ---- completion queues that cannot be made longer: long enough for all of the job from the start
crowd=("$STRATA_BUILD/tests/programs/crowd" alltoall 1000 5 2)
try 0 SOFTHCA_RESIZE=no "${openib[@]}" --report-transports=json -n 16 "${crowd[@]}"
unsaid_but_reports 'completion queues of one length'
at_least connected 240 'completion queues of one length'
[ "$(count torn_down)" = 0 ] || complain "15 connections do not fit queues that were made for them"
try 0 SOFTHCA_RESIZE=no "${openib[@]}" --mca btl_openib_receive_queues "$peer" --report-transports=json -n 12 "${crowd[@]}"
unsaid_but_reports 'completion queues of one length, receive queues per peer'
[ "$(count torn_down)" = 0 ] || complain "11 connections with their receives do not fit queues that were made for them"
try 0 SOFTHCA_RESIZE=no "${openib[@]}" --mca btl_openib_srq_b 600 --report-transports=json -n 2 "$STRATA_BUILD/tests/programs/cycles" 1
at_least receives_high 1200 'completion queues of one length, many receives'
try 0 SOFTHCA_RESIZE=no SOFTHCA_MAX_CQE=300 "${openib[@]}" --mca btl_openib_srq_b 600 --report-transports=json -n 4 \
    "$STRATA_BUILD/tests/programs/cycles" 1
at_least receives_high 600 'more receives than fit completion queues of 300'
# ---- or as long as the device allows, and connections take turns
for most in 200 300; do
    try 0 SOFTHCA_RESIZE=no SOFTHCA_MAX_CQE=$most "${openib[@]}" --report-transports=json -n 16 "${crowd[@]}"
    unsaid_but_reports "completion queues of $most and no more"
    at_least torn_down 16 "completion queues of $most and no more"
done
try 0 SOFTHCA_MAX_SRQ_WR=100 "${openib[@]}" --report-transports=json --mca btl_openib_srq_b 80 -n 2 \
    "$STRATA_BUILD/tests/programs/cycles" 1
at_least receives_high 160 'shared receive queues of 100'
# ---- none at all but for datagrams: an error that says so
try nonzero SOFTHCA_MAX_QP=1 "${openib[@]}" --mca btl_openib_connect_timeout_ms 500 -n 2 "$hostile" exchange
says 'no queue pair can be made for it: Cannot allocate memory'
# ---- none as it is asked for, which is not waited for
begun=$SECONDS
try nonzero SOFTHCA_MAX_SGE=1 "${openib[@]}" -n 2 "$hostile" exchange
says 'no queue pair can be made for it: Invalid argument'
[ $((SECONDS - begun)) -lt 30 ] || complain "a request that is refused was said for $((SECONDS - begun)) s"
# ---- registrations: long messages go in fragments
for most in 6 10; do
    try 0 SOFTHCA_MAX_MR=$most "${openib[@]}" -n 4 "$hostile" exchange
done
# ---- under load: the device goes, or a completion queue is overrun; by name
under_load() { # FAULT MESSAGE
    local rank=
    export SOFTHCA_FABRIC=openib-load-$$
    in_background timeout -k 2 $limit "${openib[@]}" -n 2 "$hostile" long openib-load
    for _ in $(seq 100); do
        grep -q 'running' "$work/err" && rank=$(pgrep -f "^[^ ]*hostile long openib-load" | head -1) && break
        sleep 0.1
    done
    softhca-stat --fault "$rank" "$1" >"$work/stat" 2>&1 || complain "no rank to be troubled by $1: $(cat "$work/stat")"
    wait $job
    status=$?
    { [ $status != 0 ] && [ $status != 124 ]; } || complain "status $status after $1"
    says "$2"
    unset SOFTHCA_FABRIC
}
under_load 'device soft0 gone' 'the device has failed'
under_load 'overrun 20' 'a completion queue was overrun|CQ error'
finish
