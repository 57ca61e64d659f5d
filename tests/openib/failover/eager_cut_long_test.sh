#!/bin/bash
# Many ranks with few rings of eager RDMA each (tests/programs/storm.c), whose connections break while the rings carry messages, and are
# made again: softhca's fault `connections down` at ranks and times at random. Nothing is lost, doubled, out of order or changed, in all
# patterns, by each detection, with completions delayed, and with two ports that go down as well. SEED=N repeats a run.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_FABRIC=openib-eager-cut-$$
RANDOM=${SEED:=$$}
ranks=$(form 8 32) cuts=$(form 6 100) limit=$(form 600 3600)
say_form "$ranks ranks of 32, at least $cuts of 100 faults and messages in rings that they cut in each setting, seed $SEED"
! full_form || job_limit=$limit
# A message is lost for good after 25 ms: some cuts are shorter, and connections outlive them.
quick=(--mca btl_openib_timeout 11 --mca btl_openib_retry_count 2 --mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 20)
fault() { softhca-stat --fault "$1" "$2" >"$work/stat" 2>&1; } # PID COMMAND
cut() { # FAULT...: some of these at a rank at random, for up to 90 ms
    local pid=${pids[RANDOM % ${#pids[@]}]} what=${*:RANDOM % $# + 1:1}
    fault "$pid" "$what down" || complain "fault $what down: $(cat "$work/stat")"
    sleep 0.0$((RANDOM % 10))
    fault "$pid" "$what up" || complain "fault $what up: $(cat "$work/stat")"
    fault "$pid" tally || complain "no tally: $(cat "$work/stat")"
    writes[pid]=$(sed -n 's/.* cut-writes \([0-9]*\).*/\1/p' "$work/stat")
    sleep 0.$((RANDOM % 2))$((RANDOM % 10))
}
# Writes with data are messages by rings: none other is so long that it goes by RDMA.
writes_cut() {
    local pid n=0
    for pid in "${!writes[@]}"; do n=$((n + writes[pid])); done
    echo $n
}
storm() { # PATTERN DETECTION PATHS FAULTS-OF-ALL
    local pattern=$1 detection=$2 paths=$3 all senders=$ranks what="$1, $2, $3 paths${4:+, $4}" faults=("connections")
    [ "$pattern" != incast ] || senders=$((ranks - 1))
    [ "$paths" = 1 ] || faults+=("connections" "port soft0 1" "port soft1 1")
    rm -f "$work/enough" "$SOFTHCA_TALLY"
    in_background timeout -k 2 "$limit" env SOFTHCA_DEVICES="$paths" SOFTHCA_FAULTS="$4" "${openib[@]}" -n "$ranks" --mca mca_base_verbose 3 \
        --report-transports=json --mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_detect "$detection" \
        --mca btl_openib_eager_rdma_after 2 --mca btl_openib_eager_rdma_window 64 --mca btl_openib_eager_rdma_peers 2 "${quick[@]}" \
        "$STRATA_BUILD/tests/programs/storm" "$pattern" 300 "$RANDOM" -1 "$work/enough"
    wait_until lines_are "$work/err" '^running' "$senders" || complain "$what: not all ranks run"
    mapfile -t pids <<<"$(softhca-stat | awk '$2 == "storm" { print $1 }')"
    [ ${#pids[@]} = "$ranks" ] || complain "$what: there are ${#pids[@]} ranks"
    writes=()
    for ((made = 0; made < cuts || ($(writes_cut) < cuts && made < 20 * cuts); made++)); do cut "${faults[@]}"; done
    touch "$work/enough"
    wait "$job"
    status=$?
    [ $status = 0 ] || complain "$what: status $status"
    all=$(awk -v p="$pattern" '$1 == p { print $2 }' "$work/out")
    [ "${all:-0}" -ge $((senders * 300)) ] || complain "$what: messages that have come: $all"
    came cut-writes "$cuts" 1000000000 "$what"
    grep -q 'path [01] of [12] to rank [0-9]* by openib failed' "$work/err" || complain "$what: no connection has failed"
    grep -q 'path [01] of [12] to rank [0-9]* works again' "$work/err" || complain "$what: no connection has come back"
    at_least eager_rdma $((all / 100)) "$what"
    at_least rings_revoked 1 "$what"
    echo "$what: ${all:-no} messages, $(count eager_rdma) by $(count rings) rings, $(count rings_revoked) revoked; $made faults have cut $(tally cut-writes) of these" \
        "and $(($(tally cut) - $(tally cut-writes))) others, $(grep -c 'by openib failed' "$work/err") ends of paths failed"
}

late='delay 50,stall 300'
for detection in flag seal imm; do
    for pattern in random incast alltoall; do
        full_form || [ "$detection,$pattern" = flag,random ] || [ "$detection,$pattern" = seal,incast ] || continue
        storm $pattern $detection 1 ""
    done
    full_form || [ $detection = imm ] || continue
    storm alltoall $detection 1 "$late"
    storm "random" $detection 2 ""
done
[ "$failures" = 0 ] || echo "SEED=$SEED repeats this run, as far as the timing is the same"
finish
