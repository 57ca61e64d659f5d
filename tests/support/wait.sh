# shellcheck shell=bash
# Bounds of time in shell tests. No test passes or fails by how fast the machine is: a test waits for an event, and a
# bound of minutes ends only what hangs. Sourced. `make bench-promises` measures the times that Strata promises.

# shellcheck disable=SC2034 # for those that source this
job_limit=1200 # seconds after which a job counts as hung; programs with a watchdog show their stacks after 1000
wait_limit=300 # seconds after which an event counts as lost

# Polls COMMAND until it succeeds; fails after wait_limit seconds, with a line that names the command.
wait_until() { # COMMAND...
    local end=$((SECONDS + wait_limit))
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "waited for $wait_limit s in vain: $*" >&2
            return 1
        fi
        sleep 0.02
    done
}

# Runs COMMAND with its status in $status, "hung" when it was ended by job_limit: 124 and 137 are statuses of jobs, too.
bounded() { # COMMAND...
    local end=$((SECONDS + job_limit))
    timeout -k 5 "$job_limit" "$@"
    status=$?
    if [ "$SECONDS" -ge "$end" ] && { [ "$status" = 124 ] || [ "$status" = 137 ]; }; then status=hung; fi
}

# States of processes, for wait_until.
file_has() { grep -qE -- "$2" "$1"; }                                          # FILE REGEX
lines_are() { [ "$(grep -cE -- "$2" "$1")" = "$3" ]; }                         # FILE REGEX NUMBER
process_state() { sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status"; } # PID: prints R, S, T, ...
in_state() { [[ "$(process_state "$1")" == [$2] ]]; }                          # PID STATES
