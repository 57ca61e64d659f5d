#!/bin/bash
# Many ranks with few rings of eager RDMA each, which are granted and revoked all the time (tests/programs/storm.c): nothing is lost,
# doubled, out of order or changed. In all patterns, by each detection, with messages and acknowledgements lost, completions delayed,
# connections that are closed and made again, a rank that is killed, ports that go down. SEED=N repeats a run.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-storm-$$
RANDOM=${SEED:=$$}
limit=$(form 600 7200)
! full_form || job_limit=$limit
ranks=$(form 32 256) places=$(form 4 16) each=$(form 300 2000) most=$(form 300 40000)
say_form "$ranks ranks of 256, $places rings each of 16, $((ranks * most)) of 10240000 messages at random, seed $SEED"
storm_program=$STRATA_BUILD/tests/programs/storm
storm() { # WANTED-STATUS WHAT LEAST-BY-RINGS-IN-A-HUNDRED PATTERN MESSAGES [VARIABLE=VALUE...] [-- PARAMETERS...]
    local want=$1 what=$2 least=$3 pattern=$4 messages=$5 environment=() victim=() all
    shift 5
    while [ $# -gt 0 ] && [ "$1" != -- ]; do environment+=("$1") && shift; done
    [ "$want" = 0 ] || victim=("$((ranks / 2))")
    try "$want" ${environment[@]+"${environment[@]}"} "${openib[@]}" -n "$ranks" --report-transports=json --mca btl_openib_eager_rdma on \
        --mca btl_openib_eager_rdma_after 2 --mca btl_openib_eager_rdma_window 64 --mca btl_openib_eager_rdma_peers "$places" "${@:2}" \
        "$storm_program" "$pattern" "$messages" "$SEED" ${victim[@]+"${victim[@]}"}
    all=$(awk -v p="$pattern" '$1 == p { print $2 }' "$work/out")
    [ -n "$all" ] || { complain "$what: no messages were counted: $(cat "$work/out")" && return; }
    case $want,$pattern in
    0,incast) [ "$all" = $(((ranks - 1) * messages)) ] || complain "$what: $all messages have come" ;;
    0,*) [ "$all" = $((ranks * messages)) ] || complain "$what: $all messages have come" ;;
    esac
    at_least eager_rdma $((all * least / 100)) "$what"
    at_least rings_revoked 1 "$what"
    echo "$what: $all messages, $(count eager_rdma) by $(count rings) rings, of which $(count rings_revoked) were revoked"
}

# To each peer some ten messages in the short form, and forty in the full one: the grant of a ring takes a round trip.
storm 0 alltoall 1 alltoall "$(form 300 10000)" -- --mca btl_openib_eager_rdma_lively 1
storm 0 incast 1 incast "$each" -- --mca btl_openib_eager_rdma_lively 1
storm 0 "random" 20 random "$most"
for detection in flag imm; do
    full_form || [ $detection = imm ] || continue
    storm 0 "random, $detection" 20 random "$each" -- --mca btl_openib_eager_rdma_detect $detection
done
if full_form; then
    for faults in 'delay 50' 'stall 3000' 'torn 5'; do storm 0 "random, $faults" 20 random "$each" "SOFTHCA_FAULTS=$faults"; done
fi
storm 0 "random, messages and acknowledgements lost" 10 random "$each" 'SOFTHCA_FAULTS=drop 97,acks 101,delay 5'
came dropped 1 1000000000 "messages lost"
storm 0 "random, few connections at a time" 1 random "$(form 100 2000)" -- --mca btl_openib_max_connected_peers $((ranks / 4))

# ---- a rank is killed: the others go on
crash_wanted=1
storm 137 "random, rank $((ranks / 2)) killed" 10 random "$each" -- --keep-going
unset crash_wanted

# ---- of two ports each, one or the other goes down and comes up
changes=$(form 10 200)
export SOFTHCA_DEVICES=2
ranks=$(form 8 64)
in_background timeout -k 2 "$limit" "${openib[@]}" -n "$ranks" --report-transports=json --mca mca_base_verbose 3 --mca btl_openib_eager_rdma on \
    --mca btl_openib_eager_rdma_after 2 --mca btl_openib_eager_rdma_window 64 --mca btl_openib_eager_rdma_peers 2 \
    --mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 50 "$storm_program" random "$(form 20000 100000)" "$SEED$$"
pids=() end=$((SECONDS + 300))
while [ ${#pids[@]} -lt "$ranks" ] && [ $SECONDS -lt $end ]; do
    sleep 0.1
    mapfile -t pids <<<"$(pgrep -f "^[^ ]*storm random [0-9]* $SEED$$\$")" # /dev/fd is not everywhere
done
made=0
for _ in $(seq "$changes"); do
    pid=${pids[RANDOM % ${#pids[@]}]} port=$((RANDOM % 2))
    if softhca-stat --fault "$pid" "port soft$port 1 down" >/dev/null 2>&1; then made=$((made + 1)); fi
    sleep 0.0$((RANDOM % 10))
    softhca-stat --fault "$pid" "port soft$port 1 up" >/dev/null 2>&1
done
wait "$job"
status=$?
[ $status = 0 ] || complain "ports that go down: status $status"
[ "$made" -ge 1 ] || complain "no port went down while the job ran"
all=$(awk '$1 == "random" { print $2 }' "$work/out")
[ "$all" = $((ranks * $(form 20000 100000))) ] || complain "ports that go down: $all messages have come"
echo "ports that go down $made times: $all messages, $(count eager_rdma) by $(count rings) rings"
[ "$failures" = 0 ] || echo "SEED=$SEED repeats this run, as far as the timing is the same"
finish
