#!/bin/bash
# The scale that softhca is for: 256 processes on two processors, all connected with all by two queue pairs, which are 130,560;
# a message over each, both ways; an idle one takes at most 512 bytes of shared state. Some are killed in the middle of traffic,
# then all.
. "$STRATA_SOURCE/tests/softhca/scale/lib.sh" || exit 1
[ -z "${SANITIZER_FLAGS-}" ] || skip "256 processes with a sanitizer's memory"
[ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 4 ] || skip "less than 4 GiB of memory"
cpus=$(taskset -cp $$ | sed 's/.*: //; s/-/,/' | cut -d, -f1,2)
taskset -cp "$cpus" $$ >/dev/null
scaled 200 256 2 exchange
scaled 200 256 2 kill 16
kill_all traffic 256 2
finish
