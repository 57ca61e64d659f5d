#!/bin/bash
# Two machines that connect without a parameter, though most of their interfaces lead nowhere: milliseconds of each rank until it has got
# the other's first message, a line each, for promises.sh. ROUNDS=10. Needs root; status 77 and the reason where it cannot run.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
ranks_per_machine=1
veth eth0
for m in 1 2; do network $m eth0 there 10.77.0.$m/24 || skip "eth0 cannot be set up"; done
misleading_links
names_mean_loopback
wait_until link_is eth0 UP
for _ in $(seq "${ROUNDS:-10}"); do
    cluster -np 2 "$with_hosts" "$STRATA_BUILD/bench/promise_times" first
    if [ "$status" = 0 ]; then cat "$work/out"; else echo 999999; fi # a round that failed is the worst
done
