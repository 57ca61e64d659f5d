#!/bin/bash
# Collectives one of whose members is killed (tests/programs/coll_death.c): short and long blocks, at once and on the way. The calls of all
# others end with the name of that member, and they go on without it.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
program=$STRATA_BUILD/tests/programs/coll_death
status=0 n_done=0
say_form "kinds of collectives, 5 ranks; full: 2 ranks and tcp, too"
one() { # RANKS BTL KIND COUNT ROUND POLLS [SETTING=VALUE OF coll_sm, or inter]
    local out ended setting=${7-ranks=0} between=()
    [ "$setting" = inter ] && between=(inter) setting=ranks=64
    out=$(timeout -k 5 "$job_limit" strata-run --mca coll_arrival_ranks 0 --mca "coll_sm_${setting%%=*}" "${setting#*=}" --mca btl "$2,self" --keep-going -n "$1" "$program" "$3" "$4" "$5" "$6" ${between[@]+"${between[@]}"} 2>&1)
    ended=$?
    n_done=$((n_done + 1))
    if [ $ended != 137 ] || [ "$(grep -c 'rank 1 failed, goes on$' <<<"$out")" != $(($1 - 1)) ]; then
        echo "FAILED: $*: status $ended: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
}
for kind in 0 1 2 3 4 5 6 7 8 9 10 11; do
    one 5 sm "$kind" 5000 20 $((kind % 3))
    case $kind in # by shared memory: in buffers, read by others, before the members have agreed, and in the next component
    0) one 5 sm "$kind" 5000 20 0 read_min=1g ;;
    3) one 5 sm "$kind" 5000 20 sm_steps read_min=1g ;;
    1) one 5 sm "$kind" 20000 20 away read_min=1k ;;
    8) one 5 sm "$kind" 20000 20 sm_reads read_min=1k ;;
    2) one 5 sm "$kind" 5000 20 away ranks=64 ;;
    9) one 5 sm "$kind" 20000 0 1 ranks=64 ;;
    4) one 5 sm "$kind" 5000 0 0 memory=0 ;;
    esac
    one 5 sm "$kind" "$((kind % 2 ? 20000 : 8))" $((kind % 2)) 1
    case $kind in 0 | 1 | 4 | 9 | 10) one 5 sm "$kind" "$((kind % 2 ? 20000 : 8))" 20 $((kind % 3)) inter ;; esac
    if full_form; then
        for when in sm_steps sm_reads away; do
            case $kind in # a counter that does not grow in an operation names no phase of it
            0 | 1 | 2 | 3 | 6 | 8) [ $when = sm_reads ] || one 5 sm "$kind" 20000 2 $when read_min=1g ;;
            esac
            case $kind in
            1 | 6 | 8) one 5 sm "$kind" 20000 2 $when read_min=1k ;;
            esac
        done
        for polls in 0 1 2 3 5 10 100 1000; do
            one 2 sm "$kind" 5000 2 "$polls"
            one 5 sm "$kind" 20000 2 "$polls"
            one 5 sm "$kind" 20000 2 "$polls" read_min=1g
            one 5 sm "$kind" 20000 $((polls % 2)) "$polls" read_min=1
            one 4 tcp "$kind" 20000 2 "$polls"
            [ "$kind" = 11 ] || one 7 sm "$kind" 20000 2 "$polls" inter
        done
    fi
    echo "up to operation $kind: $n_done jobs"
done
exit $status
