#!/bin/bash
# The random collectives of coll_test by coll_sm: buffers of the least size, blocks that are read or not, memory that does not suffice;
# and its counters, which tell that it did the calls, and how.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/coll.sh"
component=coll_sm program=$STRATA_BUILD/tests/conformance/coll_test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
say_form "random calls of threads, and of processes over sm and tcp; full: more of them"

threads tcp,self/random_calls buffer=4k read_min=1 readers=1
threads tcp,self/random_calls buffer=4k read_min=1g direct_max=0
threads tcp,self/random_calls memory=100k alltoall=100 bcast=0
threads tcp,self/freed_early read_min=1
threads tcp,self/two_threads buffer=4k
threads sm,self/memory_of_many memory=100000

processes() { # CASE CONDITION "OPTION-OF-STRATA-RUN..." SETTING=VALUE...
    local condition=$2 out ended name="$1 $3 ${*:4}"
    local calls=0 steps=0 reads=0 below=0 refused=0
    three_processes "$1" "$3" "${@:4}"
    if [ $ended = 0 ] && grep -q '^1 cases passed, 0 failed' <<<"$out" && ((condition)); then
        echo "processes: $name: $calls calls, $steps steps, $reads reads, $below below, $refused refused"
    else
        echo "FAILED: processes: $name: status $ended, not $condition: $calls calls, $steps steps, $reads reads, $below below," \
            "$refused refused: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
    last_calls=$calls last_steps=$steps
}
calls3=random_calls_of_three
processes $calls3 'calls > 0 && steps >= calls && reads > 0 && below > 0 && refused == 0' "--mca btl sm,self"
all_calls=$last_calls
processes $calls3 "calls == $last_calls && steps > $last_steps && reads == 0 && refused == 0" "--mca btl sm,self" buffer=4k read_min=1g
processes $calls3 "calls == $last_calls && reads > 0" "--mca btl tcp,self" buffer=4k read_min=1 readers=1
processes $calls3 'calls == 0 && below > 0 && refused > 0' "--mca btl sm,self" memory=0
processes $calls3 'calls == 0 && below == 0 && refused == 0' "--mca btl sm,self" ranks=0
processes $calls3 "calls > 0 && calls < $all_calls" "--mca btl sm,self" ranks=2
# Two of three on a node: communicators of the three do not ask.
processes $calls3 "calls > 0 && calls < $all_calls && refused == 0" "--mca btl sm,tcp,self --mca mca_base_node 2"
processes freed_early 'calls > 0 && reads > 0' "--mca btl sm,self" read_min=1
processes two_threads 'calls > 0' "--mca btl sm,self"
exit $status
