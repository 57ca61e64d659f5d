#!/bin/bash
# A peer is killed before, during and after connecting, in the middle of long messages both ways, and under puts with notice. The
# launcher tells nobody (mpirun --enable-recovery): the survivors detect the failure by connect_timeout_ms, by the device's retries or
# by keepalive_ms, name this cause, and continue. With shared receive queues and with one per peer. Where the launcher reports the death, its report counts.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
command -v mpirun.openmpi >/dev/null || { echo "SKIP: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
crash_wanted=1 # the peer is killed
limit=600      # a safety net: the times themselves are measured by the benchmarks
peer_death=$STRATA_BUILD/tests/programs/peer_death
keepalive_ms=$(form 400 1000) first_ms=$(form 1000 3000)
connect_ms=300000 # where no connection to the dead peer is requested
say_form "connect_timeout_ms $first_ms, keepalive_ms $keepalive_ms, $(form "one case" "two cases") with receive queues per peer"
untold() { # QUEUES PROGRAM...
    try 0 SOFTHCA_FABRIC="untold-$$" mpirun.openmpi --oversubscribe --enable-recovery -n 3 \
        -x LD_PRELOAD="$STRATA_BUILD/softhca/.libs/libsofthca.so" -x STRATA_MCA_btl=openib,self \
        -x "STRATA_MCA_btl_openib_receive_queues=$1" -x STRATA_MCA_btl_openib_connect_timeout_ms=$connect_ms \
        -x STRATA_MCA_btl_openib_keepalive_ms=$keepalive_ms -x STRATA_MCA_mca_base_fence_after_failure_ms=500 "${@:2}"
}
# The same where survivors request a connection to the dead peer. On a busy machine a living peer may not answer within connect_timeout_ms
# either, and is reported as failed as well: such a run shows nothing, and is repeated with more time.
unanswered() { # WHEN
    local failed_before=$failures
    for connect_ms in "$first_ms" 10000 60000; do
        failures=$failed_before
        untold "$shared" "$peer_death" "$1"
        grep -qE 'rank [02] on host .* failed: .*does not answer requests' "$work/err" || break
        echo "untold, $1: a living peer did not answer within $connect_ms ms"
    done
}
# Both survivors continue. The last one was told no earlier than after so many milliseconds.
go_on() { # WHAT LEAST
    local last
    last=$(sed -n 's/.* was told after \([0-9]*\) ms$/\1/p' "$work/out" | sort -n | tail -1)
    { [ "$(grep -c 'goes on$' "$work/out")" = 2 ] && [ "${last:--1}" -ge "$2" ]; } ||
        complain "killed $1: not both survivors continue, or they were told before $2 ms: $(cat "$work/out")"
    echo "$1: told after $last ms"
}
for queues in "$shared" "$peer"; do
    for when in before connecting heard connected sending receiving; do
        case $queues,$when in
        "$peer",before | "$peer",connect* | "$peer",heard) continue ;;
        "$peer",sending) full_form || continue ;;
        esac
        case $when in
        before | connecting) unanswered $when ;;
        *) connect_ms=300000 && untold "$queues" "$peer_death" $when ;;
        esac
        case $when in
        connecting) # no answer; or the connection had come far enough for the device to report the loss, on a busy machine
            go_on "untold, $when" 0
            says 'rank 1 .*failed: the peer failed: (it does not answer requests for a connection|transport retry counter exceeded)'
            ;;
        before) # no answer within connect_timeout_ms
            go_on "untold, $when" $((connect_ms - 100))
            says 'rank 1 .*failed: the peer failed: it does not answer requests for a connection'
            ;;
        *) # the device gives up: on the message, or on keepalive's probe where nothing is sent
            go_on "untold, $when" 0
            says 'rank 1 .*failed: the peer failed: transport retry counter exceeded'
            ;;
        esac
        ! grep -qi 'killed\|launcher' "$work/err" || complain "$when: the launcher told the survivors"
    done
done
for when in before receiving; do
    try 137 "${openib[@]}" --keep-going -n 3 "$peer_death" $when
    go_on "told, $when" 0
    says 'rank 1 .*killed by signal 9'
done
# Receivers of puts with notice: what is under way to a dead one ends with an error, once. A sender that did not run when the receiver
# died may have nothing under way when it is told: such a run shows less, and is repeated.
ended() { # WHAT STARTER ARG...
    local failed_before=$failures
    for _ in 1 2 3 4 5; do
        failures=$failed_before
        "${@:2}"
        [ "$(grep -c 'goes on$' "$work/out")" = 2 ] || complain "puts with notice, $1: not both senders continue: $(cat "$work/out")"
        echo "puts with notice, $1: $(sed -n 's/ operations ended.*//p' "$work/out" | tr '\n' ' ')"
        [ "$failures" = "$failed_before" ] && grep -q ': 0 operations ended' "$work/out" || break
    done
    [ "$(grep -cE ': [1-9][0-9]* operations ended with an error$' "$work/out")" = 2 ] ||
        complain "puts with notice, $1: not both senders had errors: $(cat "$work/out")"
}
connect_ms=300000
for length in $(form 20000 "8 5000 20000"); do
    ended "untold, $length bytes" untold "$shared" "$STRATA_BUILD/tests/programs/notify_death" "$length"
    says 'rank 0 .*failed: the peer failed: transport retry counter exceeded'
    ended "told, $length bytes" try 137 "${openib[@]}" --keep-going -n 3 "$STRATA_BUILD/tests/programs/notify_death" "$length"
done
finish
