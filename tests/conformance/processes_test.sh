#!/bin/bash
# strata-conformance with processes for ranks, under strata-run, over every transport that strata-info finds, and over the ways in
# which btl_sm moves bytes; and a rank that is killed while others put with notice. The short form has fewer jobs. The whole suite goes
# over sm; other transports, and jobs that differ by settings, have the contract and the messages whose sizes and kinds of data decide
# how they go.
# starts first
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
status=0 n_tried=0 only=()
# The lines of a failed job that tell why, on one line, so that a summary that shows lines with FAILED shows them; else its last lines.
reason() {
    local why
    why=$(grep -vE '^(passed|left out)' <<<"$out" | head -15)
    tr '\n' '|' <<<"${why:-$(tail -5 <<<"$out")} (after: $(grep -E '^(passed|left out)' <<<"$out" | tail -1))"
    echo
}
try() { # RANKS "OPTION-OF-STRATA-RUN..." LIST-OF-BTLS [PARAMETER=VALUE]...
    local n=$1 run list=$3 args=() rc=0
    read -ra run <<<"$2"
    shift 3
    for p in "$@"; do args+=(--mca "${p%%=*}" "${p#*=}"); done
    for p in ${only[@]+"${only[@]}"}; do args+=(--only "$p"); done
    out=$(timeout -k 5 "$job_limit" strata-run ${run[@]+"${run[@]}"} -n "$n" strata-conformance --mca btl "$list" ${args[@]+"${args[@]}"} 2>&1) || rc=$?
    if [ "$rc" -eq 0 ]; then
        echo "$list, $n ranks, ${*:-defaults}: $(tail -n 1 <<<"$out")"
        # A suite that ran no case proves nothing.
        grep -qE '^[1-9][0-9]* cases passed, 0 failed' <<<"$out" || { echo "FAILED: no case was run" && status=1; }
        if [ "$n" -ne 3 ]; then grep -q '^passed   transport/' <<<"$out" || { echo "FAILED: the contract was not tested" && status=1; }; fi
    else
        echo "FAILED: $list, $n ranks, ${*:-defaults}: status $rc: $(reason)"
        status=1
    fi
    n_tried=$((n_tried + 1))
}
run_sm() { try "$1" "" self,sm "${@:2}"; }

# A transport that does not start here, or whose ranks cannot be processes, says so; softhca is tried as a device.
starts() { # "OPTION-OF-STRATA-RUN..." NAME
    local run rc=0
    read -ra run <<<"$1"
    out=$(timeout -k 5 "$job_limit" strata-run ${run[@]+"${run[@]}"} -n 2 strata-conformance --mca btl "self,$2" --only messages/basic/short_message 2>&1) || rc=$?
    case $rc in
    0) return 0 ;;
    2) return 1 ;;
    esac
    # It starts and does not work: the test of it says more.
    return 0
}
names=$(strata-info --components --json | python3 -c '
import json, sys
print(*(c["name"] for c in json.load(sys.stdin)["components"] if c["framework"] == "btl"))') || { echo "FAILED: strata-info: $names" && exit 1; }
grep -qw sm <<<"$names" && grep -qw self <<<"$names" || { echo "FAILED: strata-info finds only: $names" && exit 1; }
some=(transport messages/basic messages/data messages/traffic)
for name in $names; do
    only=()
    if [ "$name" = self ]; then
        try 1 "" self
        continue
    fi
    with=
    if ! starts "" "$name"; then
        why=$(head -n 1 <<<"$out")
        with=--softhca
        # A sanitizer's library has to come before softhca's.
        if [ -n "${SANITIZER_FLAGS-}" ] || [ ! -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] || ! starts --softhca "$name"; then
            echo "left out: $name: $why"
            continue
        fi
    fi
    if full_form; then
        try 2 "$with" "self,$name"
        try 3 "$with" "self,$name"
    elif [ "$name" != sm ]; then
        only=("${some[@]}" clients messages/order messages/matching)
    fi
    try 4 "$with" "self,$name"
done
only=()
full_form || only=("${some[@]}")
if full_form; then
    run_sm 2 btl_sm_single_copy=off
    run_sm 2 btl_sm_single_copy=one_sided btl_sm_rdma_min=1k btl_sm_stream_limit=1k btl_sm_eager_limit=1k
    run_sm 4 btl_sm_rings=1 btl_sm_promote_after=1 btl_sm_promote_window=4 btl_sm_attach=socket
fi
# Small frames, and a transport beside one that is preferred.
if grep -qw tcp <<<"$names"; then
    try 2 "" self,tcp btl_tcp_max_send=2k btl_tcp_unsent=4k
    try 2 "" tcp,sm,self
    # On one machine it opens no port unless the list names it.
    out=$(timeout -k 5 "$job_limit" strata-run -n 2 strata-info --explain 2>&1)
    grep -qE '^ *btl +tcp +rejected +all ranks are on this machine' <<<"$out" || { echo "FAILED: tcp is in use by default: $(reason)" && status=1; }
fi
run_sm 4 btl_sm_single_copy=cooperative btl_sm_rdma_min=4k btl_sm_coop_min=4k btl_sm_coop_chunk=4k btl_sm_stream_limit=4k
run_sm 2 btl_sm_rings=0 btl_sm_queue_slots=8 btl_sm_cells=1
# A receiver of puts with notice is killed: what its senders have under way ends, and they go on.
for length in $(form 8 "8 5000 20000"); do
    out=$(timeout -k 5 "$job_limit" strata-run --keep-going -n 3 --mca btl sm,self "$STRATA_BUILD/tests/programs/notify_death" "$length" 2>&1)
    ended=$?
    if [ $ended = 137 ] && [ "$(grep -c 'goes on$' <<<"$out")" = 2 ]; then
        echo "notify_death $length: both senders go on"
    else
        echo "FAILED: notify_death $length: status $ended: $(reason)"
        status=1
    fi
done
[ "$n_tried" -ge 5 ] || { echo "FAILED: only $n_tried jobs" && status=1; }
exit $status
