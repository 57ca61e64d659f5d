#!/bin/bash
# 255 ranks all send to one: over shared queues, which begin with 40 buffers; over shared queues of 16 buffers that may not grow; over
# one queue per peer, for comparison. No rank is without a processor for so long that a connection is given up.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
limit=900
senders=$(form 63 255)
say_form "$senders senders of 255"
# Traffic four times as long, and so on, until the shared queues have grown as often and as far: what makes them grow is how the
# ranks come to run, and, where events are lost, a look at the queue now and then.
grows() { # LEAST HIGH ROUNDS BYTES BATCHES COMMAND...: count of growths, buffers; the rest as for traffic
    for rounds in "$3" $(($3 * 4)) $(($3 * 16)) $(($3 * 64)); do
        try 0 "${@:6}" "$STRATA_BUILD/tests/programs/traffic" incast "$4" "$rounds" "$5"
        [ "$(count grown)" -lt "$1" ] || [ "$(count receives_high)" -lt "$2" ] || break
    done
    at_least grown "$1" "$rounds rounds of $4 bytes"
    at_least receives_high "$2" "$rounds rounds of $4 bytes"
}
# Bytes, rounds, batches, queues.
sizes=("8 $(form 10 30) 2 $shared" "4096 30 2 $shared" "4096 5 1 $short" "4096 5 1 $peer")
full_form || unset 'sizes[1]'
for what in "${sizes[@]}"; do
    # shellcheck disable=SC2086 # four words
    set -- $what
    grown=0
    [ "$4" != "$shared" ] || grown=1
    grows $grown 0 "$2" "$1" "$3" "${openib[@]}" --report-transports=json --mca btl_openib_receive_queues "$4" -n $((senders + 1))
    unsaid_but_reports "$senders to 1, $what"
    at_least connected $((2 * senders)) "$senders to 1, $what"
    [ "$4" != "$short" ] || [ "$(count receives_high)" -le $(((senders + 1) * 16)) ] ||
        complain "$(count receives_high) buffers where there may be 16"
    echo "$4, $rounds rounds: $(cat "$work/out")"
done
# ---- the device's limit event (few buffers left) is lost every time, or is repeated: the queue grows all the same, up to what 11
# peers may have in flight
for fault in limit-lost limit-again; do
    grows 2 $((4 * 24 + 11 * 18)) 1000 1000 2 SOFTHCA_FAULTS="$fault 1000000" "${openib[@]}" --report-transports=json \
        --mca btl_openib_srq_b 16 --mca btl_openib_srq_k 2 -n 12
    unsaid_but_reports "$fault"
    came "$fault" 2 1000000 "$fault"
    [ "$(count receives_high)" -le $((11 * (64 + 2) + 11 * 24)) ] || complain "$fault: $(count receives_high) buffers are posted"
    echo "$fault: $(tally $fault) times, grown $(count grown) times in $rounds rounds"
done
# ---- messages sent after one that waits for a buffer may not overtake it by more than the sequence numbers can tell: 40,000 short
# messages of each sender, after one long message, with four buffers for the long ones
for coalesce in 1k 0; do
    try 0 "${openib[@]}" -n "$(form 6 10)" --mca btl_openib_rnr_timer 0 --mca pml_ob1_coalesce $coalesce \
        --mca btl_openib_receive_queues P,8448,72,16,64:S,65536,4,1,2 "$STRATA_BUILD/tests/programs/traffic" overtake 8 40000 "$(form 1 2)"
    unsaid "one overtaken, coalesce $coalesce"
done
finish
