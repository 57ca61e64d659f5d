#!/bin/bash
# Ranks that die in the middle of a message, one or all; a launcher that dies. The job ends, says which rank failed and why,
# and leaves no file and no process. How soon it ends is measured by `make bench-promises`.
. "$STRATA_SOURCE/tests/hostile/lib.sh"

crash_wanted=1
dying() { # NUMBER: so many ranks have said that they die, which they do in the middle of a message
    lines_are "$work/err" 'dying at [0-9.]+$' "$1" || complain "$(grep -c 'dying at' "$work/err") ranks say that they die, not $1"
}

snapshot
for sig in 9 11 6; do
    run $((128 + sig)) strata-run -n 4 "$hostile" die 1 $sig die-$$
    dying 1
    says "rank 1 on .* was killed by signal $sig"
    nothing_left die-$$
done
run 137 strata-run -n 2 --mca btl_sm_single_copy off "$hostile" die 0 9 copy-$$
says "rank 0 on .* was killed by signal 9"
dying 1
nothing_left copy-$$
run 137 strata-run -n 4 "$hostile" die -1 9 all-$$
# All ranks die; the launcher may end some before they say so.
says "dying at"
nothing_left all-$$
run 3 strata-run -n 3 "$hostile" exit 2 3 exit-$$
says "rank 2 on .* exited with status 3"
nothing_left exit-$$

# A rank that returns without a word is not forgotten either.
run 1 strata-run -n 2 "$hostile" exit 1 0 silent-$$
says "rank 1 on .* exited with status 0 before finalize"
nothing_left silent-$$

# The launcher is killed: the ranks do not stay.
in_background strata-run -n 3 "$hostile" hold launcher-$$
wait_until lines_are "$work/err" 'holding at' 3 || complain "not all ranks hold"
kill -9 $job
wait $job 2>/dev/null
nothing_left launcher-$$

# Told to stop, it ends everything and leaves nothing.
snapshot
for sig in TERM INT; do
    in_background strata-run -n 3 "$hostile" hold stop-$$
    wait_until lines_are "$work/err" 'holding at' 3 || complain "not all ranks hold"
    kill -$sig $job
    wait $job
    status=$?
    [ $status = $((128 + $(kill -l $sig))) ] || complain "status $status after SIG$sig"
    nothing_left stop-$$
done
run 124 strata-run -n 2 --timeout 2 "$hostile" hold timeout-$$
says timeout
nothing_left timeout-$$
finish
