#!/bin/bash
# Callers that do not belong to the job, at all its ports of btl_tcp: a port scanner, random bytes, truncated greetings, a length of
# 0xffffffff, one byte a second, greetings without more, what a member of another job has said. They are there while the job's own
# connections are made, and while its messages go; the job loses nothing, breaks no connection and ends well. The full form lasts ten
# minutes or longer.
. "$STRATA_SOURCE/tests/hostile/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
stranger=$STRATA_BUILD/tests/programs/stranger
count=$(form 300 20000)
seed=$((RANDOM + 1))
# Hours of a busy machine are no failure; the job's own watchdog comes first.
if full_form; then job_limit=7200 && export HOSTILE_TIMEOUT=7000; fi
say_form "$count of 20000 callers, seed $seed"
free_port() { # of two, below the kernel's own choices: nobody listens on either
    local port
    while port=$((10000 + RANDOM % 20000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || (exec 3<>"/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null || { echo $port; return; }
    done
}
attacked() { # MODE CALLERS: a job of two ranks in that mode, told to go on or to end when half of them have been there
    local mode=$1 callers=$2 port
    port=$(free_port)
    rm -f "$work/go"
    in_background timeout -k 5 "$job_limit" strata-run -n 2 --mca btl tcp,self --mca btl_tcp_ports "$port-$((port + 1))" \
        --mca btl_tcp_handshake_timeout_ms 1500 "$hostile" "$mode" "$work/go"
    wait_until lines_are "$work/err" '^running' 2 || complain "$mode: the job does not run"
    timeout -k 5 "$job_limit" "$stranger" $((callers / 2)) "$seed" "$port" $((port + 1)) >"$work/first" 2>&1 || complain "$mode: $(cat "$work/first")"
    [ "$mode" = streams ] || touch "$work/go"
    timeout -k 5 "$job_limit" "$stranger" $((callers / 2)) $((seed + 1)) "$port" $((port + 1)) >"$work/second" 2>&1 ||
        [ "$mode" = later ] || complain "$mode: $(cat "$work/second")"
    touch "$work/go"
    wait "$job"
    status=$?
    [ "$status" = 0 ] || complain "$mode: status $status"
    for kind in scan silent random truncated length slow greeted replay; do
        grep -qE "^$kind [1-9]" "$work/first" || complain "$mode: no caller of kind $kind"
    done
}
crowded() { # a job makes its connections among more callers than may be there without a proof, which have said a greeting and stay
    local port crowd
    port=$(free_port)
    rm -f "$work/go"
    in_background timeout -k 5 "$job_limit" strata-run -n 2 --mca btl tcp,self --mca btl_tcp_ports "$port-$((port + 1))" \
        --mca btl_tcp_handshake_timeout_ms 86400000 "$hostile" later "$work/go"
    wait_until lines_are "$work/err" '^running' 2 || complain "crowd: the job does not run"
    "$stranger" crowd "$seed" "$port" $((port + 1)) >"$work/crowd" 2>&1 &
    crowd=$!
    wait_until lines_are "$work/crowd" '^crowd of' 1 || complain "crowd: $(cat "$work/crowd")"
    touch "$work/go"
    wait "$job"
    status=$?
    kill "$crowd"
    wait "$crowd"
    [ "$status" = 0 ] || complain "crowd: status $status"
}
crowded
attacked later 140 # its second half may come when the job is through
attacked streams "$count"
[ "$(grep -c ': 0 paths failed' "$work/out")" = 2 ] || complain "connections of the job have broken: $(cat "$work/out")"
finish
