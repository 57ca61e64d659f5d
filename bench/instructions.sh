#!/usr/bin/env bash
# Instructions for one 8-byte message, by callgrind: counted inside bench_send and bench_recv only, at two numbers of
# messages, so that what is left besides the messages cancels. Beside each figure the budget of
# docs/design/instruction-budget.md; the exit status is 1 when one is exceeded.
set -euo pipefail
build=${STRATA_BUILD:?run make bench-instructions}
budget=${BENCH_BUDGET:?run make bench-instructions}
few=1000 many=3000

if ! command -v valgrind >/dev/null; then
    echo "bench-instructions: valgrind is missing; on Debian: apt-get install valgrind" >&2
    exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT

count() { # function, transport, messages
    "$build/libtool" --quiet --mode=execute valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect="$1" "$build/bench/instructions" "$2" "$3" 2>"$log" || {
        cat "$log" >&2
        return 1
    }
    sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p' "$log"
}

# | `self send` | 123 |  in the budget's table
allowed() { # name
    sed -n "s/^| *\`$1\` *| *\([0-9]*\) *|.*/\1/p" "$budget"
}

status=0
row() { # name, measured
    local limit verdict=""
    limit=$(allowed "$1")
    if [ -n "$limit" ]; then
        verdict=met
        if [ "$2" -gt "$limit" ]; then
            verdict=exceeded
            status=1
        fi
    fi
    printf '%-28s %12s %8s  %s\n' "$1" "$2" "${limit:--}" "$verdict"
}

echo "# instructions for one 8-byte message (callgrind, $((many - few)) messages)"
printf '%-28s %12s %8s\n' "" instructions budget
for transport in self sm; do
    echo "bench-instructions: counting $transport" >&2
    total=0
    for part in send recv; do
        a=$(count "bench_$part" $transport $few)
        b=$(count "bench_$part" $transport $many)
        each=$(((b - a) / (many - few)))
        total=$((total + each))
        row "$transport $part" $each
    done
    row "$transport send and receive" $total
done
exit $status
