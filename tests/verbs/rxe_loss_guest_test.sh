#!/bin/bash
# The cases of two processes on two Soft-RoCE devices with a link between them that loses, doubles and reorders packets.
set -u
here=$(cd "$(dirname "$0")" && pwd)
run() { # what netem does; a word of its statistics that must not be 0, or nothing
    echo "netem $1"
    # shellcheck disable=SC2016 # for the shell in the guest
    bash "$here/../guest/run" --netem "$1" env VERBS_DEVICE=rxe0 VERBS_PEER_DEVICE=rxe1 VERBS_TIME_LIMIT=60 bash -c '
        bash "$1/run_suite.sh" "$2" processes atomics || exit
        [ -n "$3" ] || exit 0
        n=$(tc -s qdisc show dev v0 | sed -n "s/.*$3 \([0-9]*\).*/\1/p")
        echo "$3: $n"
        [ "${n:-0}" -gt 0 ] || { echo "FAIL: the packets did not cross the link" && exit 1; }' - "$here" "$STRATA_BUILD" "${2-}"
}
run "loss 1%" dropped && run "delay 500us reorder 1% duplicate 1%"
