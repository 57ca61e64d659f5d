#!/bin/bash
# The conformance suite and the contract of transports with processes for ranks, under strata-run, over the ways in which btl_sm
# moves bytes; and a rank that is killed while others put with notice. The short form, which builds other than the plugins' run, has three
# of these ways.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
programs=$STRATA_BUILD/tests/programs
status=0
try() { # ranks "program argument..." parameters...
    local n=$1 words args=()
    read -ra words <<<"$2"
    shift 2
    for p in "$@"; do args+=(--mca "${p%%=*}" "${p#*=}"); done
    if out=$(timeout -k 5 "$job_limit" strata-run -n "$n" ${args[@]+"${args[@]}"} "$programs/${words[0]}" "${words[@]:1}" 2>&1); then
        echo "${words[*]}, $n ranks, ${*:-defaults}: $out"
        # A suite that ran no case proves nothing.
        grep -qE '(^|: )[1-9][0-9]* cases ' <<<"$out" || { echo "FAILED: no case was run" && status=1; }
    else
        echo "FAILED: ${words[*]}, $n ranks, ${*:-defaults}: $(tail -20 <<<"$out")"
        status=1
    fi
}
run() { # ranks parameters...
    try "$1" conformance "${@:2}"
    if [ "$1" -gt 1 ]; then try "$1" "btl_contract sm" "${@:2}"; fi
}
if full_form; then
    run 1
    run 2 btl_sm_single_copy=off
    run 2 btl_sm_single_copy=one_sided btl_sm_rdma_min=1k btl_sm_stream_limit=1k btl_sm_eager_limit=1k
    run 4 btl_sm_rings=1 btl_sm_promote_after=1 btl_sm_promote_window=4 btl_sm_attach=socket
fi
run 4
run 4 btl_sm_single_copy=cooperative btl_sm_rdma_min=4k btl_sm_coop_min=4k btl_sm_coop_chunk=4k btl_sm_stream_limit=4k
run 2 btl_sm_rings=0 btl_sm_queue_slots=8 btl_sm_cells=1
# A receiver of puts with notice is killed: what its senders have under way ends, and they go on.
for length in $(form 8 "8 5000 20000"); do
    out=$(timeout -k 5 "$job_limit" strata-run --keep-going -n 3 --mca btl sm,self "$programs/notify_death" "$length" 2>&1)
    ended=$?
    if [ $ended = 137 ] && [ "$(grep -c 'goes on$' <<<"$out")" = 2 ]; then
        echo "notify_death $length: both senders go on"
    else
        echo "FAILED: notify_death $length: status $ended: $(tail -20 <<<"$out")"
        status=1
    fi
done
exit $status
