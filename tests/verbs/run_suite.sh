#!/bin/bash
# Runs the programs of the verbs suite on one device and prints the totals. Usage: run_suite.sh BUILD [PROGRAM...]
# BUILD: the build folder (its tests/verbs/suite holds the programs). The environment chooses the device: README.md.
# Exit status: 0 all passed, 1 something failed, 77 nothing could be run.
set -u
build=${1:?usage: run_suite.sh BUILD [PROGRAM...]}
shift
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -eq 0 ]; then
    for source in "$here"/suite/*.c; do
        name=${source##*/}
        set -- "$@" "${name%.c}"
    done
fi

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 143' TERM INT HUP
# A preloaded device is for the programs only, not for the tools of this script.
preload=${VERBS_PRELOAD-}
start() { # PROGRAM: leaves its output, then its status
    env ${preload:+LD_PRELOAD="$preload"} "$build/tests/verbs/suite/$1" >"$work/$1.output" 2>&1 </dev/null
    echo $? >"$work/$1.new"
    mv "$work/$1.new" "$work/$1.status"
}
worst=0 any=0 passed=0 failed=0 skipped=0 why=
result() { # PROGRAM that has ended
    local status total p f s output=$work/$1.output
    cat "$output"
    status=$(cat "$work/$1.status" 2>/dev/null || echo unknown)
    case $status in
    0) any=1 ;;
    77) why=$(sed -n '$s/.*SKIP //p' "$output") && return ;;
    *) any=1 worst=1 ;;
    esac
    total=$(sed -n 's/^TOTAL .*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$output")
    if [ -z "$total" ]; then
        echo "FAIL $1: it ended with status $status and no total"
        worst=1 failed=$((failed + 1))
        return
    fi
    read -r p f s <<<"$total"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}
programs=()
for program in "$@"; do
    if [ -x "$build/tests/verbs/suite/$program" ]; then
        programs+=("$program")
    else
        echo "SKIP $program: not built (libibverbs or Check is missing)"
        why="the suite was not built: libibverbs or Check is missing"
    fi
done
# $VERBS_AT_ONCE programs run at the same time; their results are in the order of the programs.
started=0 ended=0 shown=0
while [ $shown -lt ${#programs[@]} ]; do
    while [ $started -lt ${#programs[@]} ] && [ $((started - ended)) -lt "${VERBS_AT_ONCE:-1}" ]; do
        start "${programs[started]}" &
        started=$((started + 1))
    done
    wait -n
    ended=$((ended + 1))
    # A program that has left no status is shown when all that were started have ended.
    while [ $shown -lt $started ] && { [ -e "$work/${programs[shown]}.status" ] || [ $ended -ge $started ]; }; do
        result "${programs[shown]}"
        shown=$((shown + 1))
    done
done
if [ "$any$worst" = 00 ]; then
    echo "SKIP the verbs suite: $why"
    exit 77
fi
echo "VERBS SUITE on ${VERBS_DEVICE-the first device}: $passed passed, $failed failed, $skipped skipped as known differences"
exit "$worst"
