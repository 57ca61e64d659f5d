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

# A preloaded device is for the programs only, not for the tools of this script.
preload=${VERBS_PRELOAD-}
worst=0 any=0 passed=0 failed=0 skipped=0 why=
for program in "$@"; do
    if [ ! -x "$build/tests/verbs/suite/$program" ]; then
        echo "SKIP $program: not built (libibverbs or Check is missing)"
        why="the suite was not built: libibverbs or Check is missing"
        continue
    fi
    output=$(env ${preload:+LD_PRELOAD="$preload"} "$build/tests/verbs/suite/$program" 2>&1)
    status=$?
    printf '%s\n' "$output"
    case $status in
    0) any=1 ;;
    77) why=${output##*SKIP } ; continue ;;
    *) any=1 worst=1 ;;
    esac
    total=$(printf '%s\n' "$output" | sed -n 's/^TOTAL .*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    if [ -z "$total" ]; then
        echo "FAIL $program: it ended with status $status and no total"
        worst=1 failed=$((failed + 1))
        continue
    fi
    read -r p f s <<<"$total"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
if [ "$any$worst" = 00 ]; then
    echo "SKIP the verbs suite: $why"
    exit 77
fi
echo "VERBS SUITE on ${VERBS_DEVICE-the first device}: $passed passed, $failed failed, $skipped skipped as known differences"
exit "$worst"
