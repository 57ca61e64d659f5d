#!/bin/bash
# `strata-perf compare` and `channel` that do not come to their end: a signal ends them with what was measured so far and with all that
# the job has started, and a library whose job hangs costs the time limit once.
. "$STRATA_SOURCE/tests/integration/lib.sh"
tiny=(--sizes 8 --iters 2 --batches 2)
trap 'xargs -r kill -9 2>/dev/null <"$work/left"; rm -rf "$work"' EXIT
: >"$work/left"
# A program of another name whose rank has a session of its own, and stays when the program is ended.
leaves_a_rank() { # NAME
    mkdir -p "$work/bin"
    cat >"$work/bin/$1" <<END
#!/bin/sh
setsid sh -c 'echo \$\$ >>"$work/left"; exec sleep 3600' &
until [ -s "$work/left" ]; do sleep 0.02; done
echo started >>"$work/starts"
exec sleep 3600
END
    chmod +x "$work/bin/$1"
}
# A process that has ended counts as gone before its parent has taken its status.
gone() { test -s "$work/left" && while read -r pid; do ! grep -Eqs '^State:\s+[^Z]' "/proc/$pid/status" || return 1; done <"$work/left"; }
ended_by() { # SIGNAL: of the program that $job, a timeout(1), runs; its status in $status
    kill "-$1" "$(pgrep -P "$job")"
    wait "$job"
    status=$?
}
round() { grep -oE 'round [0-9]+ of' "$work/err" | tail -n 1 | tr -dc 0-9; }

# The signal comes in a later round than the first. Beside this build itself, whose jobs are the shortest; on one processor.
against=(--against "$STRATA_BUILD" --cpus "$(taskset -cp $$ | grep -oE '[0-9]+' | sed -n 2p)")
begun() { grep -Eq "round ([2-9]|[1-9][0-9]+) of" "$work/err" || ! kill -0 "$job" 2>/dev/null; }
timeout "$job_limit" strata-perf compare "${against[@]}" --only latency "${tiny[@]}" --rounds 1000 --json >"$work/out" 2>"$work/err" </dev/null &
job=$!
check "a later round begins" wait_until begun
ended_by TERM
check "the status says which signal, not $status" test "$status" = 143
err_has 'ended by signal 15 in round'
check "what was measured is printed" python3 -c 'import json,sys
d = json.load(open(sys.argv[1]))
assert 1 <= d["rounds"] < d["rounds_wanted"] == 1000, d
assert d["rows"][0]["strata"]["samples"] >= 2 * d["rounds"], d' "$work/out"
no_files_soon

# Signals that its caller has had ignored do not end it: a hangup under nohup, an interrupt of a script's background.
timeout "$job_limit" env --ignore-signal=HUP,INT strata-perf compare "${against[@]}" --only latency "${tiny[@]}" --rounds 1000 >"$work/out" 2>"$work/err" </dev/null &
job=$!
check "a later round begins, under nohup" wait_until begun
goes_on() { [ "$(round)" -gt "$before" ]; }
for signal in HUP INT; do
    kill "-$signal" "$(pgrep -P "$job")"
    before=$(round)
    check "an ignored SIG$signal: it goes on" wait_until goes_on
done
ended_by TERM

# Processes that a job has started end with it, also outside the launcher's process group or session.
leaves_a_rank taskset
timeout "$job_limit" env PATH="$work/bin:$PATH" strata-perf channel --tables pair --wires sm --ways channel --rounds 3 --json \
    >"$work/out" 2>"$work/err" </dev/null &
job=$!
check "a job of channel begins" wait_until test -s "$work/starts"
ended_by TERM
check "channel: the status says which signal, not $status" test "$status" = 143
err_has 'ended by signal 15 in round 1 of 3'
check "channel: what the job has started is gone" gone
check "channel: JSON is printed" python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/out"
check "channel: no file is left" test -z "$(find /tmp -maxdepth 1 -name 'strata-perf-channel.*' -newer "$work/bin/taskset")"
rm "$work/bin/taskset" "$work/starts"
: >"$work/left"

if [ -x "$STRATA_BUILD/strata-mpi-twin.mpich" ]; then
    leaves_a_rank mpiexec.mpich
    timeout "$job_limit" env PATH="$work/bin:$PATH" strata-perf compare --only latency "${tiny[@]}" --rounds 3 >"$work/out" 2>"$work/err" </dev/null &
    job=$!
    check "a job of MPICH begins" wait_until test -s "$work/starts"
    ended_by TERM
    check "compare: the status says which signal, not $status" test "$status" = 143
    check "compare: what the job has started is gone" gone
    rm "$work/starts"
    : >"$work/left"
    # Nothing is asserted of Strata's own jobs, which may be late on a busy machine.
    run env PATH="$work/bin:$PATH" strata-perf compare --only latency "${tiny[@]}" --rounds 2 --timeout 5
    err_has 'MPICH latency with 2 ranks took too long'
    err_has 'MPICH is left out of further rounds of latency'
    check "it is started once: $(cat "$work/starts")" test "$(wc -l <"$work/starts")" = 1
    check "what it has started is gone" gone
else
    echo "left out: a library that hangs (no twin for MPICH in this build)"
fi
finish
