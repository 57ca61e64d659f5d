#!/bin/bash
# A process outside the job connects to the listening sockets of connect=tcp: its calls are closed and counted, and do no harm.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
limit=900
export HOSTILE_TIMEOUT=900
rounds=$(form 20 100)
say_form "$rounds of 100 rounds of wrong frames, seed 1"
calls() { # ARGS...: forge_frames.py against the job
    python3 "$STRATA_SOURCE/tests/openib/connect/forge_frames.py" $job "$@" >"$work/calls" 2>&1 || complain "the caller: $(cat "$work/calls")"
    cat "$work/calls"
}
ended_well() { # WHAT: the job, which counted all calls and printed nothing of them
    wait $job || complain "the job failed: $1"
    ! grep -v '^running$\|^{' "$work/err" || complain "$1: there are messages"
    at_least refused "$(awk '/calls at/ { print $1 }' "$work/calls")" "$1"
}
# ---- connections come and go meanwhile
in_background "${openib[@]}" -n 3 --mca btl_openib_connect tcp "$STRATA_BUILD/tests/programs/reconnect" 2000000000
calls "$rounds" --slow
kill -0 $job 2>/dev/null || complain "the job ended while it was called"
kill $job 2>/dev/null && wait $job
# ---- while the job connects and streams; with its counters
in_background "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_connect tcp "$hostile" streams "$work/enough"
calls $((rounds / 4))
touch "$work/enough"
ended_well "callers"
# ---- frames with the job's key and one wrong field: each is refused for this field, since the right frame is kept
in_background "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_connect tcp "$hostile" turns "$work/again"
until grep -q running "$work/err" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
calls $((rounds / 8)) --known 3
touch "$work/again"
ended_well "callers who know the key"
finish
