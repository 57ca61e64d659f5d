#!/bin/bash
# Unexpected messages are in the slots of a ring (tests/programs/kept.c) while the only port of either end goes down and comes up, or one
# of two: the connection ends with its rings, and the messages are what was sent. SEED=N repeats a run.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-kept-failover-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
RANDOM=${SEED:=$$}
changes=$(form 6 40)
say_form "$changes of 40 changes of a port, seed $SEED"
kept=$STRATA_BUILD/tests/programs/kept

start() { # DEVICES DETECTION
    rm -f "$work/enough"
    what="$1 devices, $2"
    in_background timeout -k 2 900 env "SOFTHCA_DEVICES=$1" "${openib[@]}" --mca mca_base_verbose 3 --mca btl_openib_coalesce_at 0 \
        --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_after 1 --mca btl_openib_eager_rdma_detect "$2" \
        --mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 50 -n 2 "$kept" any 20 "$work/enough"
    said 2 '^running'
    mapfile -t ranks <<<"$(pgrep -f "^[^ ]*kept any 20 $work/enough")"
    [ ${#ranks[@]} = 2 ] || complain "there are ${#ranks[@]} ranks"
}
checked() {
    local n
    enough
    grep -q '^rank 1: all received$' "$work/out" || complain "$what: rank 1 has not received all"
    n=$(awk '$1 == "eager_rdma_kept" { n = $2 } END { print n + 0 }' "$work/out")
    [ "$n" -ge 100 ] || complain "$what: only $n messages were kept"
    echo "$what: $n messages were kept, of which $(awk '$1 == "eager_rdma_copied" { print $2 }' "$work/out") were copied later"
}
for detect in seal flag imm; do
    start 1 $detect # messages wait for the only port
    for n in $(seq "$changes"); do
        fault "${ranks[n % 2]}" 'port soft0 1 down'
        said "$n" 'path 0 of 1 to rank [01] by openib failed'
        fault "${ranks[n % 2]}" 'port soft0 1 up'
        said "$n" 'path 0 of 1 to rank [01] works again'
    done
    checked

    start 2 $detect # a path without messages may be lost unnoticed
    for _ in $(seq "$changes"); do
        fault "${ranks[RANDOM % 2]}" "port soft$((RANDOM % 2)) 1 $([ $((RANDOM % 2)) = 0 ] && echo up || echo down)"
        sleep 0.$((RANDOM % 4))
    done
    for rank in "${ranks[@]}"; do
        for device in 0 1; do fault "$rank" "port soft$device 1 up"; done
    done
    checked
done
[ "$failures" = 0 ] || echo "SEED=$SEED repeats this run, as far as the timing is the same"
finish
