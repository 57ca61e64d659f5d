#!/bin/bash
# `strata-perf compare` that does not come to its end: a signal ends it with what was measured so far, and a library whose job hangs
# costs the time limit once.
. "$STRATA_SOURCE/tests/integration/lib.sh"
tiny=(--sizes 8 --iters 2 --batches 2)

# The signal comes in a later round than the first.
begun() { grep -Eq "round ([2-9]|[1-9][0-9]+) of" "$work/err" || ! kill -0 "$job" 2>/dev/null; }
timeout "$job_limit" strata-perf compare --only latency "${tiny[@]}" --rounds 1000 --json >"$work/out" 2>"$work/err" </dev/null &
job=$!
check "a later round begins" wait_until begun
kill "$(pgrep -P "$job")"
wait "$job"
check "the status says which signal, not $?" test $? = 143
err_has 'ended by signal 15 in round'
check "what was measured is printed" python3 -c 'import json,sys
d = json.load(open(sys.argv[1]))
assert 1 <= d["rounds"] < d["rounds_wanted"] == 1000, d
assert d["rows"][0]["strata"]["samples"] >= 2 * d["rounds"], d' "$work/out"
no_files_soon

if [ -x "$STRATA_BUILD/strata-mpi-twin.mpich" ]; then
    mkdir "$work/bin"
    printf '#!/bin/sh\necho started >>"%s/starts"\nexec sleep 3600\n' "$work" >"$work/bin/mpiexec.mpich"
    chmod +x "$work/bin/mpiexec.mpich"
    # Nothing is asserted of Strata's own jobs, which may be late on a busy machine.
    run env PATH="$work/bin:$PATH" strata-perf compare --only latency "${tiny[@]}" --rounds 3 --timeout 3
    err_has 'MPICH latency with 2 ranks took too long'
    err_has 'MPICH is left out of further rounds of latency'
    check "it is started once: $(cat "$work/starts")" test "$(wc -l <"$work/starts")" = 1
else
    echo "left out: a library that hangs (no twin for MPICH in this build)"
fi
finish
