#!/bin/bash
# The scale that softhca is for: 256 processes on two processors, all connected with all by two queue pairs, which are 130,560;
# a message over each, both ways; an idle one takes at most 512 bytes of shared state. Some are killed in the middle of traffic,
# then all.
. "$STRATA_SOURCE/tests/softhca/scale/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
[ -z "${SANITIZER_FLAGS-}" ] || skip "256 processes with a sanitizer's memory"
[ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 4 ] || skip "less than 4 GiB of memory"
cpus=$(taskset -cp $$ | sed 's/.*: //; s/-/,/' | cut -d, -f1,2)
taskset -cp "$cpus" $$ >/dev/null
processes=$(form 64 256)
say_form "$processes of 256 processes"
queues=$(form 8 2) # the fewer the processes, the more queue pairs of each: an idle one takes its share of the process's state
scaled 900 "$processes" "$queues" exchange
scaled 900 "$processes" "$queues" kill $((processes / 16))
kill_all traffic "$processes" "$queues"
finish
