# shellcheck shell=bash
# shellcheck disable=SC2034 # tests that source this use what is set here
# What tests in the guest share: the checks of the integration tests, and more time. Sourced.
. "$STRATA_SOURCE/tests/guest/in_guest.sh"
. "$STRATA_SOURCE/tests/integration/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
. /run/guest/settings
. "$STRATA_SOURCE/tests/guest/network.sh"
for netdev in /sys/class/net/v* /sys/class/net/eth*; do
    [ ! -e "$netdev" ] || interfaces="$interfaces ${netdev##*/}"
done

# As the integration tests' run, for functions, too, and with a limit for an emulated processor on a busy machine.
run() {
    local limit=(timeout -k 5 960)
    [ "$(type -t "$1")" != function ] || limit=()
    "${limit[@]}" "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
}
# A server in the background and its client, libibverbs' way; the output and the status of both.
both() { # PROGRAM ARG...
    "$@" >"$work/server" 2>&1 &
    for _ in $(seq 600); do
        ! ss -ltn | grep -q ":18515 " || break
        sleep 0.1
    done
    "$@" localhost && wait $! && cat "$work/server"
}
# Packets that queueing disciplines have dropped.
dropped() { tc -s qdisc show | grep -o 'dropped [0-9]*' | awk '{ n += $2 } END { print n + 0 }'; }
# Makes $work/own, which starts a rank of a job with devices of its own: packets of one device to itself never cross a link.
own_devices() { # DEVICES, with $PMIX_RANK in it
    printf '#!/bin/bash\nexport STRATA_MCA_btl_openib_devices=%s\nexec "$@"\n' "$1" >"$work/own"
    chmod +x "$work/own"
}
openib=(strata-run --mca btl "openib,self")
# With two nodes: one packet of a hundred is lost each way.
both_lose() {
    set_netem "loss 1%"
    on-node node2 tc qdisc replace dev eth0 root netem loss 1%
}
