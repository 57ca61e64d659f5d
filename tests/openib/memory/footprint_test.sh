#!/bin/bash
# What btl_openib's memory is per context, per connected peer with shared receive queues and without, and per rank that
# nothing was exchanged with: pinned with a margin, and mem_report against the kernel's count of pages within 5 %.
# docs/design/btl_openib.md says what it is made of.
. "$STRATA_SOURCE/tests/openib/lib.sh"
stages() { # NAME SETTING VALUE...
    local name=$1
    shift
    try 0 "${openib[@]}" -n 8 "$@" "$STRATA_BUILD/tests/programs/openib_memory"
    cp "$work/out" "$work/stages.$name"
    echo "$name:" && cat "$work/stages.$name"
}
# A stage's column of a run, kB: 1 anonymous, 2 device, 4 mem_report of btl_openib, 5 of all.
kb() { # NAME STAGE COLUMN
    awk -F: -v want="$2" -v column="$3" '$1 ~ want { split($2, f, " "); print f[column] }' "$work/stages.$1"
}
most() { # WHAT kB MOST
    echo "$1: $2 kB of at most $3"
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && a + 0 > 0 && a + 0 <= b) }' || complain "$1: $2 kB, the budget is $3"
}
agree() { # WHAT REPORTED COUNTED
    echo "$1: reported $2, counted $3 kB"
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 100 && b / a > 0.95 && b / a < 1.05) }' ||
        complain "$1: mem_report says $2 kB, the kernel $3"
}
less() { awk -v a="$1" -v b="$2" 'BEGIN { print a - b }'; }

stages shared
stages own --mca btl_openib_receive_queues P,8k,64,1,16:P,32k,32,1,15
stages many --mca btl_openib_srq_b 512
stages large --mca btl_openib_receive_queues S,256k,64,4,32:S,256k,64,1,6

# Buffers of 8 and 32 KiB: 16 and 8 to receive, 16 and 4 to send; 160 for datagrams.
most "idle context" "$(kb shared "idle context" 4)" 760
# 16 more receives of 8 KiB.
most "first connection, shared" "$(kb shared "one peer" 4)" 200
# The share in the growth of the shared queues, which fades with the number of peers, and 1.5 kB of the peer's own.
most "each further peer, shared, by mem_report" "$(kb shared "each further" 4)" 10
# Beside it both queue pairs' send queues, which softhca has in private memory, as far as requests were posted: 7 kB.
most "each further peer, shared, by the kernel" "$(kb shared "each further" 1)" 16
# 24 receives of 8 KiB and 16 of 32 KiB.
most "each further peer, queues per peer, by mem_report" "$(kb own "each further" 4)" 760
most "each further peer, queues per peer, by the kernel" "$(kb own "each further" 1)" 790

agree "idle contexts with large buffers and without" \
    "$(less "$(kb large "idle context" 5)" "$(kb shared "idle context" 5)")" \
    "$(less "$(kb large "idle context" 1)" "$(kb shared "idle context" 1)")"
agree "first connection, 512 receives" "$(kb many "one peer" 5)" "$(kb many "one peer" 1)"
agree "each further peer, queues per peer" "$(kb own "each further" 5)" "$(kb own "each further" 1)"

# In a job of a million; the same context in a job of two is what the rest costs.
resident() { # RANKS
    try 0 "LD_PRELOAD=$STRATA_BUILD/softhca/.libs/libsofthca.so" strata-perf world --ranks "$1" --mca btl openib,self --json
    awk '/resident_bytes"/ { gsub(/[^0-9.]/, "", $2); kb = $2 } END { print kb }' "$work/out"
}
many=$(resident 1000000) few=$(resident 2)
echo "context in a job of 1000000: $many bytes, of 2: $few"
awk -v a="$many" -v b="$few" 'BEGIN { exit !(b > 0 && a > 0 && (a - b) / 999998 <= 8) }' ||
    complain "more than 8 bytes for each rank that nothing was exchanged with: $many bytes against $few"
finish
