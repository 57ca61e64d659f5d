#!/bin/bash
# Numbered messages by rings of eager RDMA while ports of either end go down and come up, of two paths and of one: none is lost, none
# comes twice or in another order, every byte is right. Rings carry messages before and after. SEED=N repeats a run.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-failover-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
RANDOM=${SEED:=$$}
changes=$(form 6 40)
say_form "$changes of 40 changes of a port, seed $SEED"
numbered=$STRATA_BUILD/tests/programs/numbered

start() { # DETECTION PARAMETERS...
    rm -f "$work/enough"
    in_background timeout -k 2 900 "${openib[@]}" --mca mca_base_verbose 3 --report-transports=json --mca btl_openib_eager_rdma on \
        --mca btl_openib_eager_rdma_after 1 --mca btl_openib_eager_rdma_detect "$@" -n 2 "$numbered" 2000 "$work/enough"
    said 2 '^running'
    mapfile -t ranks <<<"$(pgrep -f "^[^ ]*numbered 2000 $work/enough")"
    [ ${#ranks[@]} = 2 ] || complain "there are ${#ranks[@]} ranks"
}
have_granted() { # NUMBER: both ranks, together, so many rings
    local pid
    for pid in "${ranks[@]}"; do
        strata-info --json --live "$pid" | python3 -c '
import json, sys
counters = json.load(sys.stdin)["contexts"][0]["counters"]
print(sum(c["value"] for c in counters if c["name"] == "btl_openib_rings_granted"))' || return 1
    done | awk -v least="$1" '{ n += $1 } END { exit !(NR == 2 && n >= least) }'
}
checked() { # WHAT: ends the stream
    local all
    # A connection that comes back has rings of its own, which are granted while messages go.
    wait_until have_granted 4 || complain "$1: no further ring is granted"
    enough
    all=$(awk '/^rank [01]: [0-9]+ messages$/ { n += $3 } END { print n + 0 }' "$work/out")
    [ "$(grep -c '^rank [01]: [0-9]* messages$' "$work/out")" = 2 ] || complain "$1: a rank has not counted its messages: $(cat "$work/out")"
    at_least eager_rdma $((all / 10)) "$1"
    at_least rings 4 "$1"
    echo "$1: $all messages, $(count eager_rdma) by $(count rings) rings"
}

for detection in seal flag imm; do
    # ---- the only port, lost and got back: messages wait for it
    export SOFTHCA_DEVICES=1
    start $detection --mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 50
    for lost in 1 2; do
        fault "${ranks[lost - 1]}" 'port soft0 1 down'
        said "$lost" 'path 0 of 1 to rank [01] by openib failed'
        fault "${ranks[lost - 1]}" 'port soft0 1 up'
        said "$lost" 'path 0 of 1 to rank [01] works again'
    done
    checked "one path, $detection"

    # ---- two paths, whose ports change at random
    export SOFTHCA_DEVICES=2
    start $detection --mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 50
    for _ in $(seq "$changes"); do
        way=down
        [ $((RANDOM % 2)) = 0 ] || way=up
        fault "${ranks[RANDOM % 2]}" "port soft$((RANDOM % 2)) 1 $way"
        sleep 0.$((RANDOM % 4))
    done
    for rank in "${ranks[@]}"; do
        for device in 0 1; do fault "$rank" "port soft$device 1 up"; done
    done
    # Ports that were down for a moment may have lost no path: then one is lost for certain.
    if ! grep -q 'path [01] of 2 to rank [01] by openib failed' "$work/err"; then
        fault "${ranks[0]}" 'port soft0 1 down'
        said 1 'path 0 of 2 to rank [01] by openib failed'
        fault "${ranks[0]}" 'port soft0 1 up'
    fi
    checked "two paths, $detection"
done
[ "$failures" = 0 ] || echo "SEED=$SEED repeats this run, as far as the timing is the same"
finish
