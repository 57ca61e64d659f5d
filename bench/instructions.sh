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
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

count() { # function, program...: instructions inside the function
    local function=$1
    shift
    "$build/libtool" --quiet --mode=execute valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect="$function" "$@" >/dev/null 2>"$log" || {
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
    printf '%-44s %12s %8s  %s\n' "$1" "$2" "${limit:--}" "$verdict"
}

echo "# instructions for one 8-byte message (callgrind, $((many - few)) messages)"
printf '%-44s %12s %8s\n' "" instructions budget
for transport in self sm channel; do
    echo "bench-instructions: counting $transport" >&2
    total=0
    for part in send recv; do
        a=$(count "bench_$part" "$build/bench/instructions" $transport $few)
        b=$(count "bench_$part" "$build/bench/instructions" $transport $many)
        each=$(((b - a) / (many - few)))
        total=$((total + each))
        row "$transport $part" $each
    done
    row "$transport send and receive" $total
done

# The same work for all: receive posted, send, wait for both, to oneself; strata-perf's loop, four messages per iteration
# (a batch that does not count and one that does, two messages each).
for program in strata-perf strata-mpi-twin.openmpi strata-mpi-twin.mpich; do
    [ -x "$build/$program" ] || continue
    echo "bench-instructions: counting $program" >&2
    loop=("$build/$program" latency --sizes 8 --batches 1 --iters)
    a=$(count round_trips "${loop[@]}" $few) || continue
    b=$(count round_trips "${loop[@]}" $many) || continue
    case $program in
    *openmpi) name="Open MPI" ;;
    *mpich) name=MPICH ;;
    *) name=Strata ;;
    esac
    row "irecv, isend, waitall: $name" $(((b - a) / (many - few) / 4))
done
exit $status
