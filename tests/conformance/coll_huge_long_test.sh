#!/bin/bash
# Collectives with blocks of more than 2 GiB and of more than 4 GiB together (tests/programs/coll_huge.c), by each component: processes over
# sm. Buffers repeat a window of memory, so that some hundred MiB are sufficient.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/coll.sh"
program=$STRATA_BUILD/tests/programs/coll_huge
case ${SANITIZER_FLAGS-} in ?*) echo "skipped: sanitizers take much memory for each byte of address space"; exit 77 ;; esac
mib=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
if [ "$mib" -lt 1000 ]; then
    echo "skipped: coll_huge needs 1000 MiB of memory, $mib MiB are available"
    exit 77
fi
[ "$(ulimit -v)" = unlimited ] || { echo "skipped: coll_huge needs address space, which is limited (ulimit -v)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
say_form "one or two operations by each way of a block, 2 ranks; full: all operations, and 3 ranks"

# CONDITION is on the sums of the component's counters.
run() { # COMPONENT RANKS CONDITION "OPTION-OF-STRATA-RUN..." KIND...
    # shellcheck disable=SC2034 # sums reads `component`
    local component=$1 condition=$3 options row out ended=0 name="$1, $2 ranks: ${*:4}"
    local calls=0 reads=0 blocks_put=0 blocks_on_demand=0
    read -ra options <<<"$4"
    rm -f "$work/report"
    out=$(timeout -k 5 "$job_limit" strata-run -n "$2" "${options[@]}" --report-counters=json \
        --report-file "$work/report" "$program" "${@:5}" 2>&1) || ended=$?
    while read -r row; do printf -v "${row%%=*}" %s "${row#*=}"; done < <(sums "$work/report")
    if [ $ended = 0 ] && [ "$(grep -c 'rank [0-9]*: [a-z]* of [0-9]* bytes$' <<<"$out")" = $((($# - 4) * $2)) ] && ((condition)); then
        echo "$name: $calls calls, $reads reads, $blocks_put blocks put, $blocks_on_demand by messages"
    else
        echo "FAILED: $name: status $ended, not $condition: $calls calls, $reads reads, $blocks_put blocks put, $blocks_on_demand" \
            "by messages: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
}
reads="--mca btl sm,self"
buffers="$reads --mca coll_sm_read_min 900g"
puts="$reads --mca coll_sm_ranks 0"
messages="$puts --mca coll_arrival_scheme copy"
leaders="--mca btl sm,tcp,self --mca mca_base_node 2 --mca coll_sm_ranks 0 --mca coll_arrival_form pap_shm_direct"
basic="$puts --mca coll_arrival_ranks 0"

if full_form; then
    run coll_sm 2 'calls == 6 && reads == 5' "$reads" alltoall allgather bcast
    run coll_sm 3 'calls == 3 && reads == 6' "$reads" alltoall
    run coll_sm 2 'calls == 10 && reads == 0' "$buffers" alltoall allgather bcast allreduce reduce
    run coll_arrival 2 'calls == 10 && blocks_put == 9' "$puts" alltoall alltoallv allgather allgatherv bcast
    run coll_arrival 2 'calls == 6 && blocks_put == 0 && blocks_on_demand == 5' "$messages" alltoallv allgatherv bcast
    # In pieces from the root to the leader of the other node, and on.
    run coll_arrival 3 'calls == 3 && blocks_put == 2' "$leaders" bcast
    run coll_basic 2 1 "$basic" alltoall alltoallv allgather allgatherv bcast gather scatter
    run coll_basic 3 1 "$basic" bcast alltoallv
else
    run coll_sm 2 'calls == 4 && reads == 3' "$reads" alltoall bcast
    # In about 2,000 pieces of a block; with the default buffers of 32 KiB each piece costs more switches of ranks than copying.
    run coll_sm 2 'calls == 2 && reads == 0' "$buffers --mca coll_sm_buffer 1m" allgather
    run coll_arrival 2 'calls == 2 && blocks_put == 2' "$puts" alltoallv
    run coll_basic 2 1 "$basic" allgatherv
fi
exit $status
