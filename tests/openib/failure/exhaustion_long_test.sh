#!/bin/bash
# The device has fewer objects than are needed, or no more at all.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
limit=600
say_form "$(form "one size of each limit" "several sizes of each limit")"
# ---- a creation fails once while a connection is made, and is tried again
full_form && faults=('qp 4' 'qp 5' 'mr 9') || faults=('qp 4' 'mr 9')
for fault in "${faults[@]}"; do
    try 0 SOFTHCA_FAULTS="$fault" "${openib[@]}" -n 4 "$hostile" exchange
    came failed 1 4 "$fault"
done
# ---- fewer queue pairs than the device says, for good: idle connections are evicted for new ones, and no rank waits for ever for another
# rank that waits as well; all of it within the time that one connection may take
alltoall() { # RANKS QUEUE-PAIRS METHOD
    local what="$1 ranks, $2 queue pairs each, $3"
    try 0 SOFTHCA_FAULTS="qp-most $2" "${openib[@]}" --report-transports=json --mca btl_openib_connect "$3" \
        --mca btl_openib_connect_fallback 0 -n "$1" "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 5 2
    unsaid_but_reports "$what"
    came qp-refused "$1" 1000000 "$what"
    at_least torn_down $((4 * $1)) "$what"
    [ "$(count connected)" -le $(($1 * ($2 - 1) / 2)) ] || complain "$what: $(count connected) ends at the end"
    echo "$what: $(tally qp-refused) refused, $(count torn_down) closed, $(cat "$work/out")"
}
! full_form || alltoall 16 9 ud
alltoall "$(form 10 16)" 5 ud
alltoall "$(form 10 12)" 7 tcp
# ---- no queue pair any more, whichever connection is evicted: that request ends, which the program checks, and others continue
export SOFTHCA_FABRIC=openib-exhausted-$$
in_background env SOFTHCA_TALLY="$SOFTHCA_TALLY" timeout -k 2 $limit "${openib[@]}" --report-transports=json --mca btl_openib_connect_timeout_ms 2000 \
    --mca mca_base_fence_after_failure_ms 500 -n 5 "$STRATA_BUILD/tests/programs/no_queue_pair" "$work/go"
while starving=$(sed -n 's/^running //p' "$work/err") && [ -z "$starving" ] && kill -0 $job 2>/dev/null; do sleep 0.05; done
softhca-stat --fault "$starving" 'qp-most 1' >"$work/stat" 2>&1 || complain "no rank to take queue pairs from: $(cat "$work/stat")"
touch "$work/go"
wait $job
status=$?
[ $status = 0 ] || complain "status $status of a job with a rank without queue pairs"
says 'rank 4 .*failed: the peer failed: no queue pair can be made for it: Cannot allocate memory'
# At most one connection, at each end, is evicted in vain; the program checks how many peers rank 0 still talks to.
[ "$(count torn_down)" -le 2 ] || complain "$(count torn_down) ends of connections were evicted in vain"
unset SOFTHCA_FABRIC
echo "no queue pair: $(cat "$work/out")"
# ---- queue pairs for three or four of seven peers: connections take turns
for most in $(form 7 "7 9"); do
    try 0 SOFTHCA_MAX_QP=$most "${openib[@]}" -n 8 "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 5 2
    unsaid "$most queue pairs"
done
# ---- memory for the receive queues of two of four peers: attempts that fail release the receives that they have posted
try 0 SOFTHCA_MEMLOCK=1600k "${openib[@]}" --mca btl_openib_receive_queues "$peer" -n 4 "$STRATA_BUILD/tests/programs/reconnect" 20
unsaid 'little memory for receive queues per peer'
try 0 SOFTHCA_FAULTS='qp 5' "${openib[@]}" --mca btl_openib_receive_queues "$peer" -n 3 "$STRATA_BUILD/tests/programs/reconnect" 1
holds() { sed -n 's/^.*rank 0 holds \([0-9]*\) kB.*/\1/p' "$work/out"; }
with=$(holds)
try 0 "${openib[@]}" --mca btl_openib_receive_queues "$peer" -n 3 "$STRATA_BUILD/tests/programs/reconnect" 1
without=$(holds)
# An attempt posts 256 KiB and more; the order of messages makes a difference of a few requests.
[ "${with:-99999999}" -lt $((without + 64)) ] ||
    complain "rank 0 holds $with kB after a queue pair that could not be made, else $without kB"
# ---- a queue becomes as long as the device allows, which need not be a power of two
try 0 SOFTHCA_MAX_CQE=300 "${openib[@]}" --report-transports=json -n 9 "$STRATA_BUILD/tests/programs/reconnect" 1
at_least connected 16 'completion queues of 300'
[ "$(count torn_down)" = 0 ] || complain "eight connections do not fit 300 completions"
# ---- completion queues that cannot be made longer: long enough for all of the job from the start
traffic=("$STRATA_BUILD/tests/programs/traffic" alltoall 1000 5 2)
ranks=$(form 10 16)
try 0 SOFTHCA_RESIZE=no "${openib[@]}" --report-transports=json -n "$ranks" "${traffic[@]}"
unsaid_but_reports 'completion queues of one length'
at_least connected $((ranks * (ranks - 1))) 'completion queues of one length'
[ "$(count torn_down)" = 0 ] || complain "$((ranks - 1)) connections do not fit queues that were made for them"
try 0 SOFTHCA_RESIZE=no "${openib[@]}" --mca btl_openib_receive_queues "$peer" --report-transports=json -n 12 "${traffic[@]}"
unsaid_but_reports 'completion queues of one length, receive queues per peer'
[ "$(count torn_down)" = 0 ] || complain "11 connections with their receives do not fit queues that were made for them"
try 0 SOFTHCA_RESIZE=no "${openib[@]}" --mca btl_openib_srq_b 600 --report-transports=json -n 2 "$STRATA_BUILD/tests/programs/reconnect" 1
at_least receives_high 1200 'completion queues of one length, many receives'
try 0 SOFTHCA_RESIZE=no SOFTHCA_MAX_CQE=300 "${openib[@]}" --mca btl_openib_srq_b 600 --report-transports=json -n 4 \
    "$STRATA_BUILD/tests/programs/reconnect" 1
at_least receives_high 600 'more receives than fit completion queues of 300'
# ---- or as long as the device allows, and connections take turns
for most in $(form 200 "200 300"); do
    try 0 SOFTHCA_RESIZE=no SOFTHCA_MAX_CQE=$most "${openib[@]}" --report-transports=json -n 16 "${traffic[@]}"
    unsaid_but_reports "completion queues of $most and no more"
    at_least torn_down 16 "completion queues of $most and no more"
done
try 0 SOFTHCA_MAX_SRQ_WR=100 "${openib[@]}" --report-transports=json --mca btl_openib_srq_b 80 -n 2 \
    "$STRATA_BUILD/tests/programs/reconnect" 1
at_least receives_high 160 'shared receive queues of 100'
# ---- no queue pair at all but the one for datagrams: an error that says so
try nonzero SOFTHCA_MAX_QP=1 "${openib[@]}" --mca btl_openib_connect_timeout_ms 500 -n 2 "$hostile" exchange
says 'no queue pair can be made for it: Cannot allocate memory'
# ---- no queue pair of the kind that is requested: an error, without further requests
try nonzero SOFTHCA_MAX_SGE=1 "${openib[@]}" -n 2 "$hostile" exchange
says 'no queue pair can be made for it: Invalid argument'
# ---- registrations: long messages go in fragments
for most in $(form 6 "6 10"); do
    try 0 SOFTHCA_MAX_MR=$most "${openib[@]}" -n 4 "$hostile" exchange
done
# ---- under load: the device goes, or a completion queue is overrun; by name
under_load() { # FAULT MESSAGE
    local rank
    export SOFTHCA_FABRIC=openib-load-$$
    in_background timeout -k 2 $limit "${openib[@]}" -n 2 "$hostile" long "$work/enough" # which is made where no fault comes
    until grep -q 'running' "$work/err" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
    rank=$(pgrep -f "^[^ ]*hostile long $work/enough" | head -1)
    softhca-stat --fault "$rank" "$1" >"$work/stat" 2>&1 || { complain "no rank for the fault $1: $(cat "$work/stat")"; touch "$work/enough"; }
    wait $job
    status=$?
    { [ $status != 0 ] && [ $status != 124 ]; } || complain "status $status after $1"
    says "$2"
    unset SOFTHCA_FABRIC
}
under_load 'device soft0 gone' 'the device has failed'
under_load 'overrun 20' 'a completion queue was overrun|CQ error'
finish
