#!/bin/bash
# The verbs suite on softhca, preloaded. Skipped while there is no such library in the build. With the argument `more`: what
# softhca_long_test.sh runs instead, a part of it in other settings.
# starts first
set -u
. "$STRATA_SOURCE/tests/support/preload.sh"
if [ ! -e "$library" ]; then
    echo "SKIP no softhca in this build: $library"
    exit 77
fi
# Processes that fork open devices, which have threads.
export TSAN_OPTIONS="${TSAN_OPTIONS-}:die_after_fork=0"
export VERBS_DEVICE=soft0 VERBS_PRELOAD=$first$library
here=$(cd "$(dirname "$0")" && pwd)
worst=0
suite() { # what VARIABLE=VALUE... -- PROGRAM...
    local what=$1 settings=()
    shift
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    echo "softhca, $what"
    env "${settings[@]}" bash "$here/run_suite.sh" "$STRATA_BUILD" "$@"
    local status=$?
    [ $status = 77 ] && exit 77
    [ $status = 0 ] || worst=1
}
if [ "${1-}" != more ]; then
    # The suites run side by side, each in a fabric of its own: much of each is waiting.
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    behind() { # ARGUMENTS-OF-suite...
        local n=${#suites[@]}
        (
            export SOFTHCA_FABRIC=verbs-$$-$n
            suite "$@"
            exit $worst
        ) >"$work/$n" 2>&1 &
        suites+=($!)
    }
    suites=()
    behind "InfiniBand" SOFTHCA_LINK=ib VERBS_EARLIER=event --
    behind "RoCE, armed as the specification has it" SOFTHCA_LINK=roce SOFTHCA_ARM=new VERBS_EARLIER=none --
    behind "memory that peers map" VERBS_MEMORY=memfd --
    for n in "${!suites[@]}"; do
        status=0
        wait "${suites[n]}" || status=$?
        cat "$work/$n"
        [ $status = 77 ] && exit 77
        [ $status = 0 ] || worst=1
    done
    exit $worst
fi
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form five eleven) programs of the suite"
between=$(form processes 'processes atomics retry')
second=$(form 'send objects' 'send datagram rdma objects')
reliable=$(form atomics 'processes atomics') # programs without UC, where a lost message stays lost
# shellcheck disable=SC2086 # names of programs
suite "peers on another device" SOFTHCA_DEVICES=2 VERBS_PEER_DEVICE=soft1 -- $between
# shellcheck disable=SC2086
suite "the second port of the second device" SOFTHCA_DEVICES=2 SOFTHCA_PORTS=2 VERBS_DEVICE=soft1 VERBS_PORT=2 -- $second
# shellcheck disable=SC2086
suite "every 5th message lost" SOFTHCA_FAULTS='drop 5' -- $reliable
# shellcheck disable=SC2086
suite "late, and not ready at first" SOFTHCA_FAULTS='delay 50,rnr 5' -- $reliable
exit $worst
