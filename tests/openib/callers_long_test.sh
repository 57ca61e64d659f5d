#!/bin/bash
# Whoever calls the listening sockets of connect=tcp, and is none of the job, is hung up on and counted, and does no harm.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=240
in_background "${openib[@]}" -n 3 --mca btl_openib_connect tcp "$STRATA_BUILD/tests/programs/cycles" 2000000000
python3 "$STRATA_SOURCE/tests/openib/caller.py" $job 7 >"$work/calls" 2>&1 || complain "the caller: $(cat "$work/calls")"
kill -0 $job 2>/dev/null || complain "the job ended while it was called"
kill $job 2>/dev/null && wait $job
cat "$work/calls"
# While it connects, and with a look at what it has counted.
in_background "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_connect tcp "$hostile" long openib-called
python3 "$STRATA_SOURCE/tests/openib/caller.py" $job 2 >"$work/calls" 2>&1 || complain "the caller: $(cat "$work/calls")"
wait $job || complain "the job failed while it was called"
! grep -v '^running$\|^{' "$work/err" || complain "something is said of callers"
at_least refused 20 "callers"
cat "$work/calls"
finish
