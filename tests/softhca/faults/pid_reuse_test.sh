#!/bin/bash
# Another process with the pid of a peer that has ended is left alone. Who may not choose pids tries as root of a namespace.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/faults/pid_reuse
[ -x "$program" ] || skip "not built: libibverbs is missing"
soft 30 "$program" >"$work/out" 2>&1
status=$?
if [ $status = 77 ] && unshare -Urpf --mount-proc true 2>/dev/null; then
    timeout -k 2 "$job_limit" unshare -Urpf --kill-child --mount-proc env LD_PRELOAD="$preload" "$program" >"$work/out" 2>&1 </dev/null
    status=$?
fi
outcome pid_reuse $status
