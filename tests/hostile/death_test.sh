#!/bin/bash
# Ranks that die in the middle of a message, one or all; a launcher that dies. The job ends within a second, says who and
# why, and leaves no file and no process.
. "$STRATA_SOURCE/tests/hostile/lib.sh"

crash_wanted=1
slack=2.5 # seconds; the bar is 1, this machine may be busy
ended_in_time() {
    local at now
    now=$(date +%s.%N)
    at=$(sed -n 's/.*dying at \([0-9.]*\).*/\1/p' "$work/err" | sort -n | tail -1)
    [ -n "$at" ] || { complain "no rank said that it dies"; return; }
    awk -v a="$at" -v b="$now" -v s=$slack 'BEGIN { exit !(b - a < s) }' ||
        complain "the job took $(awk -v a="$at" -v b="$now" 'BEGIN { print b - a }') s to end"
    awk -v a="$at" -v b="$now" 'BEGIN { printf "ended %.2f s after the death\n", b - a }'
}

snapshot
for sig in 9 11 6; do
    run $((128 + sig)) strata-run -n 4 "$hostile" die 1 $sig die-marker
    ended_in_time
    says "rank 1"
    says "signal|killed|$(kill -l $sig)"
    nothing_left die-marker
done
run 137 strata-run -n 2 --mca btl_sm_single_copy off "$hostile" die 0 9 copy-marker
says "rank 0"
ended_in_time
nothing_left copy-marker
run 137 strata-run -n 4 "$hostile" die -1 9 all-marker
nothing_left all-marker
run 3 strata-run -n 3 "$hostile" exit 2 3 exit-marker
says "rank 2"
nothing_left exit-marker

# A rank that returns without a word is not forgotten either.
run nonzero strata-run -n 2 "$hostile" exit 1 0 silent-marker
says "rank 1"
nothing_left silent-marker

# The launcher is killed: the ranks do not stay.
in_background strata-run -n 3 "$hostile" hold launcher-marker
for _ in $(seq 100); do
    [ "$(grep -c 'holding at' "$work/err")" -ge 3 ] && break
    sleep 0.1
done
kill -9 $job
wait $job 2>/dev/null
sleep 0.5
if pgrep -f "$hostile hold launcher-marker" >/dev/null; then
    sleep 1.5
    ! pgrep -f "$hostile hold launcher-marker" >/dev/null || complain "ranks outlive a killed launcher"
    pgrep -f "$hostile hold launcher-marker" | xargs -r kill -9
fi
# Only the launcher's own session folder may stay when it is killed; the ranks' memory must not.
[ -z "$(ls -A /dev/shm | grep strata)" ] || complain "files in /dev/shm: $(ls /dev/shm)"

# Told to stop, it ends everything and leaves nothing.
snapshot
for sig in TERM INT; do
    in_background strata-run -n 3 "$hostile" hold stop-marker
    for _ in $(seq 100); do
        [ "$(grep -c 'holding at' "$work/err")" -ge 3 ] && break
        sleep 0.1
    done
    kill -$sig $job
    wait $job
    status=$?
    [ $status -ge 128 ] || complain "status $status after SIG$sig"
    nothing_left stop-marker
done
run 124 strata-run -n 2 --timeout 2 "$hostile" hold timeout-marker
nothing_left timeout-marker
finish
