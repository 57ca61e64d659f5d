# shellcheck shell=bash
# Shared by the tests with many processes. Sourced, after which the program scale runs on softhca, with the descriptors
# that a process is allowed by default.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
scale=$STRATA_BUILD/tests/softhca/scale/scale
[ -x "$scale" ] || skip "the program scale was not built: libibverbs or Check is missing"
ulimit -S -n 1024

scaled() { # SECONDS ARGS...: has to succeed; what it prints is shown
    local limit=$1 begin status=0
    shift
    begin=$(now_ms)
    soft "$limit" "$scale" "$@" >"$work/out" 2>&1 || status=$?
    if [ "$status" -ne 0 ]; then
        fail "scale $*: status $status" "$work/out"
    else
        cat "$work/out"
        checked "scale $*" "$begin"
    fi
}

alive() { # GROUP: its processes that have not ended
    ps -eo pgid=,pid=,stat= | awk -v group="$1" '$1 == group && $3 !~ /^Z/ { print $2 }'
}

sockets() { grep "@softhca-.*-$SOFTHCA_FABRIC-" /proc/net/unix; }

# Everybody is killed at once, when the line "traffic" has come or, with a number, so many seconds after the start; nothing of
# them may stay.
kill_all() { # SECONDS|traffic ARGS...
    local when=$1 group begin
    shift
    begin=$(now_ms)
    # timeout makes a process group, of which it is the first.
    timeout -k 2 "$job_limit" env LD_PRELOAD="$preload" "$scale" "$@" stay </dev/null >"$work/out" 2>&1 &
    group=$!
    pids=("$group")
    until kill -0 -- "-$group" 2>/dev/null || ! kill -0 "$group" 2>/dev/null; do sleep 0.01; done
    if [ "$when" = traffic ]; then
        until grep -q '^traffic$' "$work/out" || ! kill -0 "$group" 2>/dev/null; do sleep 0.05; done
        grep -q '^traffic$' "$work/out" || fail "scale $*: it ended before there was traffic" "$work/out"
        sleep 0.3
    else
        sleep "$when"
    fi
    kill -9 -- "-$group" 2>/dev/null || fail "scale $*: it was not there to be killed" "$work/out"
    wait "$group" 2>/dev/null
    pids=()
    # A process is a zombie as soon as its first thread has ended; the others may still hold its descriptors.
    all_gone() { [ -z "$(alive "$group")" ] && ! sockets; }
    wait_until all_gone
    [ -z "$(alive "$group")" ] || fail "scale $*: processes stay: $(alive "$group" | tr '\n' ' ')"
    if sockets; then fail "scale $*: sockets stay"; fi
    checked "scale $* killed, $when" "$begin"
}
