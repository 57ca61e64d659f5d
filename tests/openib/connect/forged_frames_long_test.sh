#!/bin/bash
# Whoever calls the listening sockets of connect=tcp, and is none of the job, is hung up on and counted, and does no harm.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=240
in_background "${openib[@]}" -n 3 --mca btl_openib_connect tcp "$STRATA_BUILD/tests/programs/reconnect" 2000000000
python3 "$STRATA_SOURCE/tests/openib/connect/forge_frames.py" $job 7 >"$work/calls" 2>&1 || complain "the caller: $(cat "$work/calls")"
kill -0 $job 2>/dev/null || complain "the job ended while it was called"
kill $job 2>/dev/null && wait $job
cat "$work/calls"
# While it connects, and with a look at what it has counted.
in_background "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_connect tcp "$hostile" streams "$work/enough"
python3 "$STRATA_SOURCE/tests/openib/connect/forge_frames.py" $job 2 >"$work/calls" 2>&1 || complain "the caller: $(cat "$work/calls")"
touch "$work/enough"
wait $job || complain "the job failed while it was called"
! grep -v '^running$\|^{' "$work/err" || complain "something is said of callers"
at_least refused "$(awk '/calls at/ { print $1 }' "$work/calls")" "callers"
cat "$work/calls"
# Frames of somebody who knows the key, and has one other thing wrong at a time: each is refused for that, since what has
# nothing wrong is not.
in_background "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_connect tcp "$hostile" turns "$work/again"
until grep -q running "$work/err" || ! kill -0 $job; do sleep 0.1; done
python3 "$STRATA_SOURCE/tests/openib/connect/forge_frames.py" $job 1 3 >"$work/calls" 2>&1 || complain "the caller: $(cat "$work/calls")"
touch "$work/again"
wait $job || complain "the job failed when it was called by somebody who knew the key"
! grep -v '^running$\|^{' "$work/err" || complain "something is said of callers who know the key"
at_least refused "$(awk '/calls at/ { print $1 }' "$work/calls")" "callers who know the key"
cat "$work/calls"
finish
