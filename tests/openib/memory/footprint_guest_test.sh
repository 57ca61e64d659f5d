#!/bin/bash
# On a real kernel's verbs, 8 ranks in a guest with shared receive queues: at most 2 MB for the first connection, at most 48 kB for
# each further connected peer with both queue pairs and all that is mapped from the device. What a window of messages to each and
# from each adds is buffers of the context, which grow by doubling until there are enough and do not go by the number of peers:
# pinned as a whole; of each peer only what is mapped from the device.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
# kB that a stage added, page by page: 1 anonymous, 2 device, 3 both.
kb() { awk -F: -v want="$1" -v column="$2" '$1 ~ want { split($2, f, " "); print f[column] }' "$work/out"; }
most() { # WHAT kB MOST
    echo "$1: $2 kB of at most $3"
    check "$1: $2 kB, the budget is $3" awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a + 0 > 0 && a + 0 <= b) }'
}
expect_status 0 "${openib[@]}" -n 8 --bind-to none "$STRATA_BUILD/tests/programs/openib_memory"
cat "$work/out"
most "first connection" "$(kb "one peer" 3)" 2048
most "each further peer" "$(kb "each further" 3)" 48
# Without it the sums would be of half of the memory.
most "each further peer, mapped from the device" "$(kb "each further" 2)" 48
most "each further peer, after windows, mapped from the device" "$(kb "after windows" 2)" 48
most "six further peers, after windows, all of it" "$(kb "after windows" 3 | awk '{ print 6 * $1 }')" 2048
finish
