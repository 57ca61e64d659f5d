#!/bin/bash
# Many ranks at a time over shared receive queues and queues per peer: more messages than there are buffers or credits for.
. "$STRATA_SOURCE/tests/openib/lib.sh"
for queues in "$peer" "$shared" "$short"; do
    traffic "$queues" 8 alltoall 4096 5 2
    traffic "$queues" 24 incast 64 20 2
done
# Both sides send before either receives, with two credits each: what returns credits needs none.
for queues in "$poor" "$poor_peer"; do
    traffic "$queues" 2 flood 1000 300 2
    traffic "$queues" 4 flood 20000 50 2
done
# A shared queue grows when it is short, but to no more than the one peer may have under way: 64 messages, two of control.
try 0 "${openib[@]}" --report-transports=json -n 2 "$STRATA_BUILD/tests/programs/traffic" flood 1000 300 2
unsaid_but_reports "flood"
n=$(count receives_high)
[ "$n" -gt 64 ] && [ "$n" -le 132 ] || complain "$n buffers in both shared queues, not 65 to 132"
# Also when LOW is more than it has at first.
try 0 "${openib[@]}" --report-transports=json --mca btl_openib_receive_queues S,8448,4096,64,64:S,33024,1024,1,6 -n 8 \
    "$STRATA_BUILD/tests/programs/traffic" incast 1000 50 4
at_least grown 1 "LOW is more than there are at first"
# Who wants to know is told, once for each queue.
ran_short() { # WHAT PARAMETERS...
    try 0 "${openib[@]}" --mca mca_base_verbose 3 "${@:2}" -n 8 "$STRATA_BUILD/tests/programs/traffic" incast 1000 100 4
    says "strata\[.*:0\] btl_openib: soft0:1: the shared receive queue of high priority ran short with [0-9]+ buffers, and $1"
    [ "$(grep -c ':0\] btl_openib: .* of high priority ran short' "$work/err")" = 1 ] || complain "$1: said more than once"
}
ran_short 'has [0-9]+ now'
ran_short 'may not have more' --mca btl_openib_receive_queues "$short"
# One that has all it may have runs short, and is not said to have grown.
try 0 "${openib[@]}" --report-transports=json --mca btl_openib_receive_queues "$short" -n 8 \
    "$STRATA_BUILD/tests/programs/traffic" incast 1000 50 4
[ "$(count receives_high)" = 128 ] && [ "$(count grown)" = 0 ] || complain "said to have grown $(count grown) times"
# As many buffers as x = log2(n) * k + b says of the peers connected now: more with k, and fewer when peers have gone.
by_formula() { # K B: receives_high of each rank is that; prints the sums of the most they had room for, and of posted_high
    python3 - "$work/err" "$1" "$2" <<'END'
import json, sys
k, b = int(sys.argv[2]), int(sys.argv[3])
x = lambda n: (max(n, 1) - 1).bit_length() * k + b
rails = [t for l in open(sys.argv[1]) if l.startswith("{") for t in json.loads(l)["transports"] if "receives_high" in t]
wrong = [t for t in rails if t["receives_high"] != x(t["connected"]) or t["posted_high"] < t["receives_high"]]
sys.exit(str(wrong)) if wrong else print(sum(t["receives_high"] for t in rails), sum(t["posted_high"] for t in rails))
END
}
for k in 0 10 40; do
    try 0 "${openib[@]}" --report-transports=json --mca btl_openib_srq_k $k --mca btl_openib_srq_b 100 -n 10 \
        "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 20 2
    sums=$(by_formula $k 100) || complain "not log2(n) * $k + 100 buffers"
    [ "$sums" = "$((10 * (4 * k + 100))) $((10 * (4 * k + 100)))" ] || complain "for nine peers each: $sums buffers, k = $k"
done
# Two connections are kept, and four made where peers ask, which are 180 buffers each. Those in excess go as they are used, so that
# more are posted, but fewer than the 260 each for nine peers.
try 0 "${openib[@]}" --report-transports=json --mca btl_openib_srq_k 40 --mca btl_openib_srq_b 100 \
    --mca btl_openib_max_connected_peers 2 -n 10 "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 6 3
read -r wanted posted <<<"$(by_formula 40 100)" && [ "${wanted:-1800}" -lt 1800 ] && [ "$posted" -lt 2600 ] ||
    complain "ten ranks have asked for ${wanted:-what they should not} and posted ${posted:-} buffers, though peers have gone"
# Messages that are taken from where they are, by connections that come and go: each ends, and none with an error. Senders that learn
# that a receiver is late would announce them.
try 0 "${openib[@]}" --report-transports=json --mca btl_openib_max_connected_peers 2 --mca mca_base_tune off -n 6 \
    "$STRATA_BUILD/tests/programs/traffic" alltoall 16000 40 4
unsaid_but_reports "connections that come and go"
at_least zcopy 500 "messages of 16000 bytes"
at_least torn_down 20 "six ranks with two connections each"
# What was sent by low priority is seen long after the peer's word that it closes: nothing is lost with the connection.
try 0 SOFTHCA_FAULTS="stall 20" "${openib[@]}" --report-transports=json --mca btl_openib_max_connected_peers 2 -n 6 \
    "$STRATA_BUILD/tests/programs/traffic" alltoall 16000 8 1
unsaid_but_reports "completions that come late"
at_least torn_down 20 "six ranks with two connections each, completions that come late"
# Puts with notice are messages, too: with few credits, and by connections that come and go, in one piece and in many.
notices() { # TURNS WHAT [VARIABLE=VALUE...] -- PARAMETERS...
    local turns=$1 what=$2 environment=()
    shift 2
    while [ "$1" != -- ]; do environment+=("$1") && shift; done
    try 0 ${environment[@]+"${environment[@]}"} "${openib[@]}" --report-transports=json -n 6 "${@:2}" "$STRATA_BUILD/tests/programs/notify_turns" "$turns"
    unsaid_but_reports "puts with notice, $what"
    [ "$(count put_notify)" = $((5 * turns * 16)) ] || complain "puts with notice, $what: $(count put_notify) went by the device, not 5 * $turns * 16"
    echo "puts with notice, $what: $(cat "$work/out"), $(count torn_down) connections taken down"
}
for queues in "$peer" "$short" "$poor" "$poor_peer"; do
    notices 30 "$queues" -- --mca btl_openib_receive_queues "$queues"
done
at_least credit_messages 500 "puts with notice, which return no credits, with two credits each"
few=(--mca btl_openib_max_connected_peers 2)
notices 30 "two connections each" -- "${few[@]}"
at_least torn_down 20 "puts with notice, two connections each"
notices 8 "pieces, and completions that come late" SOFTHCA_FAULTS="stall 20" -- "${few[@]}" --mca btl_openib_rdma_request 256
at_least torn_down 20 "puts with notice, pieces, and completions that come late"
# Windows of 64 short messages: behind the first 8, which the peer is not known to have handled, the rest goes together.
# Four lengths, 200 windows of each: 51,200 messages, and 800 answers.
window() { # COALESCE_AT
    try 0 "${openib[@]}" --report-transports=json --mca btl_openib_coalesce_at "$1" -n 2 strata-perf bw --sizes 8:64 \
        --window 64 --iters 100 --batches 1 --check
    messages=$(count messages_sent)
}
window 8
[ "$messages" -lt 20000 ] || complain "windows of short messages did not go together: $messages messages"
window 0
[ "$messages" -ge 51200 ] || complain "went together without a reason: $messages messages"
# Messages at intervals go at once, though credits for them come late.
try 0 "${openib[@]}" --report-transports=json -n 2 "$STRATA_BUILD/tests/programs/traffic" paced 8 40 1
[ "$(count messages_sent)" -ge 80 ] || complain "messages at intervals were kept back: $(count messages_sent) of 80 and more"
# Nor those that come long after a burst of which nothing was heard: of two batches of 20 and 2 messages, with a barrier
# of 2 on both sides, each by itself.
try 0 "${openib[@]}" --report-transports=json -n 2 "$STRATA_BUILD/tests/programs/traffic" pause 8 20 1
[ "$(count messages_sent)" -ge 52 ] || complain "kept back after a pause: $(count messages_sent) of 52 and more messages"
finish
