#!/bin/bash
# A peer is killed before, during and after connecting, and in the middle of long messages both ways; the launcher tells nobody
# (mpirun --enable-recovery). The others find out by themselves, in the time that the parameters say, and go on. With receive
# queues per peer, too; and where the launcher does tell they are told by that, without waiting for an answer.
. "$STRATA_SOURCE/tests/openib/lib.sh"
command -v mpirun.openmpi >/dev/null || { echo "SKIP: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
crash_wanted=1 # it is killed
peer_death=$STRATA_BUILD/tests/programs/peer_death
connect_ms=3000 keepalive_ms=1000
untold() { # QUEUES PROGRAM...
    try 0 SOFTHCA_FABRIC="untold-$$" mpirun.openmpi --oversubscribe --enable-recovery -n 3 \
        -x LD_PRELOAD="$STRATA_BUILD/softhca/.libs/libsofthca.so" -x STRATA_MCA_btl=openib,self \
        -x "STRATA_MCA_btl_openib_receive_queues=$1" -x STRATA_MCA_btl_openib_connect_timeout_ms=$connect_ms \
        -x STRATA_MCA_btl_openib_keepalive_ms=$keepalive_ms -x STRATA_MCA_mca_base_fence_after_failure_ms=500 "${@:2}"
}
# Both of the others go on, and the last one was told after so many milliseconds.
go_on() { # WHAT LEAST MOST
    local last
    last=$(sed -n 's/.* was told after \([0-9]*\) ms$/\1/p' "$work/out" | sort -n | tail -1)
    { [ "$(grep -c 'goes on$' "$work/out")" = 2 ] && [ "${last:-0}" -ge "$2" ] && [ "${last:-999999}" -le "$3" ]; } ||
        complain "killed $1: not both go on, or not after $2 to $3 ms: $(cat "$work/out")"
    echo "$1: told after $last ms"
}
busy=8000 # ms that the machine may take for anything
for queues in "$shared" "$peer"; do
    for when in before connecting heard connected sending receiving; do
        case $queues,$when in "$peer",before | "$peer",connect* | "$peer",heard) continue ;; esac
        untold "$queues" "$peer_death" $when
        case $when in
        connecting) # nobody answers; or it had come far enough for the device to notice, on a busy machine
            go_on "untold, $when" 0 $((connect_ms + busy))
            says 'rank 1 .*failed: the peer failed: (it does not answer requests for a connection|transport retry counter exceeded)'
            ;;
        before) # nobody answers
            go_on "untold, $when" $((connect_ms - 100)) $((connect_ms + busy))
            says 'rank 1 .*failed: the peer failed: it does not answer requests for a connection'
            ;;
        *) # the device gives up; where nothing is sent, after the keepalive's time at the earliest
            go_on "untold, $when" 0 $((keepalive_ms + busy))
            says 'rank 1 .*failed: the peer failed: transport retry counter exceeded'
            ;;
        esac
        ! grep -qi 'killed\|launcher' "$work/err" || complain "$when: somebody told them"
    done
done
for when in before receiving; do
    try 137 "${openib[@]}" --keep-going -n 3 "$peer_death" $when
    go_on "told, $when" 0 $busy # connect_timeout_ms is 60 s
    says 'rank 1 .*killed by signal 9'
done
finish
