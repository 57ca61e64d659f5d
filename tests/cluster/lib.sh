# shellcheck shell=bash
# Machines under Open MPI's mpirun, each a network namespace with a host name of its own: two, or $n_machines. Sourced; who sources
# it adds links.
. "$STRATA_SOURCE/tests/integration/lib.sh"
. "$STRATA_SOURCE/tools/machines/machines.sh"
skip() { echo "skipped: $*"; exit 77; }
machines_skip() { skip "$@"; }
command -v mpirun.openmpi >/dev/null || skip "mpirun.openmpi is not installed (Debian: openmpi-bin)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

space=strata$$m # its number follows
: "${n_machines:=2}" "${ranks_per_machine:=2}"
trap 'machines_remove $space; wait; rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM
machines_make $space "$n_machines" "$work"
veth() { # NAME: one on each machine, joined
    machines_join $space "$n_machines" "$1" 2>"$work/err" || skip "no veth: $(cat "$work/err")"
}
network() { # MACHINE NAME TYPE ADDRESS
    [ "$3" = there ] || ip -n "$space$1" link add "$2" type "$3" || return
    ip -n "$space$1" addr add "$4" dev "$2" && ip -n "$space$1" link set "$2" up
}
link_is() { ip -n "${space}2" link show "$1" | grep -qE "state [A-Z]*$2 "; } # NAME UP|DOWN
two_links() { # on each machine: eth0 for Strata (10.77.0), and one of mpirun's own
    control=10.78.0
    local link m
    for link in eth0:10.77.0 eth1:$control; do
        veth ${link%:*}
        for m in $(seq "$n_machines"); do network $m ${link%:*} there ${link#*:}.$m/24 || skip "${link%:*} cannot be set up"; done
        wait_until link_is ${link%:*} UP # the kernel tells of a new link with a delay
    done
}
third_link() { # eth2 (10.79.0) beside those, on each of two machines
    local m
    veth eth2
    for m in 1 2; do network $m eth2 there 10.79.0.$m/24 || skip "eth2 cannot be set up"; done
    wait_until link_is eth2 UP
}
# The script $with_hosts runs a command on a machine whose own name is an address of the loopback interface, as some installations have it.
names_mean_loopback() {
    local m
    with_hosts=$work/with_hosts
    for m in 1 2; do printf '127.0.0.1 localhost machine%s\n' $m >"$work/hosts$m"; done
    cat >"$with_hosts" <<'END'
#!/bin/bash
name=$(hostname)
mount --bind "${0%/*}/hosts${name#machine}" /etc/hosts || exit
getent hosts "$name" | grep -q '^127\.' || exit 3
exec "$@"
END
    chmod +x "$with_hosts"
}

control=10.77.0 # the network by which mpirun talks to its daemons
# In the background, so that a signal to the test is dealt with at once; its status in $status.
cluster() { # OPTION-OF-MPIRUN... PROGRAM [ARGUMENT]...
    begin_cluster "$@"
    end_cluster
}
begin_cluster() {
    local hosts='' m
    for m in $(seq "$n_machines"); do hosts+=,$control.$m:$ranks_per_machine; done
    { run "$work/on" 1 mpirun.openmpi --mca plm_rsh_agent "$work/agent" --host "${hosts#,}" \
        --mca oob_tcp_if_include "$control.0/24" --map-by node --bind-to none -x PATH -x STRATA_MCA_mca_component_path \
        -x STRATA_MCA_mca_param_files "$@"; echo "$status" >"$work/status"; } &
    job=$!
}
end_cluster() {
    wait "$job"
    status=$(<"$work/status")
    cat "$work"/err.rank* >>"$work/err" 2>/dev/null
    rm -f "$work"/err.rank*
}
# "$apart" PROGRAM...: stderr of each rank goes into a file of its own, which end_cluster adds to $work/err; nothing of it is there before.
# mpirun interleaves parts of lines of several ranks.
apart=$work/apart
# shellcheck disable=SC2016 # each rank's variable
printf '#!/bin/bash\nexec "$@" 2>>"${0%%/*}/err.rank$PMIX_RANK"\n' >"$apart"
chmod +x "$apart"
# eth0 of the first of two machines is down for five seconds, when a job has brought more than LEAST bytes to the second; the job, begun
# by begin_cluster, goes on and ends well.
link_goes_and_comes() { # WHAT LEAST
    local start before
    start=$(eth0_bytes)
    check "$1: messages go" wait_until eth0_has_brought "$2"
    ip -n ${space}1 link set eth0 down
    wait_until link_is eth0 DOWN
    before=$(eth0_bytes)
    sleep 5
    check "$1: nothing goes meanwhile" test "$(eth0_bytes)" = "$before"
    check "$1: the job is not through" kill -0 "$job"
    ip -n ${space}1 link set eth0 up
    end_cluster
    check "$1: ends well" test "$status" = 0
}
eth0_bytes() { ip netns exec ${space}2 cat /sys/class/net/eth0/statistics/rx_bytes; }
eth0_has_brought() { [ $(($(eth0_bytes) - start)) -gt "$1" ]; }
