# shellcheck shell=bash
# Two machines under Open MPI's mpirun, each a network namespace with a host name of its own. Sourced; who sources it adds links.
. "$STRATA_SOURCE/tests/integration/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces are made by root"
for program in ip unshare hostname mpirun.openmpi; do
    command -v $program >/dev/null || skip "$program is not installed (Debian: iproute2 util-linux hostname openmpi-bin)"
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

space=strata$$m # its number follows
remove() { # SPACE: both machines, and all that runs there
    for m in 1 2; do
        ip netns pids "$1$m" 2>/dev/null | xargs -r kill -9
        ip netns del "$1$m" 2>/dev/null
    done
}
trap 'remove $space; wait; rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM
# Namespaces of tests that were ended by SIGKILL.
for old in $(ip netns list 2>/dev/null | sed -nE 's/^strata([0-9]+)m[0-9]+.*/\1/p'); do
    kill -0 "$old" 2>/dev/null || remove "strata${old}m"
done
for m in 1 2; do ip netns add $space$m 2>"$work/err" || skip "no network namespace can be made: $(cat "$work/err")"; done
veth() { # NAME: one on each machine, joined
    ip link add "$1" netns ${space}1 type veth peer name "$1" netns ${space}2 2>"$work/err" || skip "no veth: $(cat "$work/err")"
}
network() { # MACHINE NAME TYPE ADDRESS
    [ "$3" = there ] || ip -n "$space$1" link add "$2" type "$3" || return
    ip -n "$space$1" addr add "$4" dev "$2" && ip -n "$space$1" link set "$2" up
}
for m in 1 2; do ip -n $space$m link set lo up; done
link_is() { ip -n "${space}2" link show "$1" | grep -qE "state [A-Z]*$2 "; } # NAME UP|DOWN
two_links() { # eth0 for Strata (10.77.0), and one of mpirun's own
    control=10.78.0
    local link m
    for link in eth0:10.77.0 eth1:$control; do
        veth ${link%:*}
        for m in 1 2; do network $m ${link%:*} there ${link#*:}.$m/24 || skip "${link%:*} cannot be set up"; done
        wait_until link_is ${link%:*} UP # the kernel tells of a new link with a delay
    done
}

# mpirun starts its daemon on the second machine by this instead of ssh.
cat >"$work/agent" <<EOF
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
shift
exec ip netns exec ${space}2 unshare --uts bash -c "hostname machine2; \$*"
EOF
cat >"$work/first" <<'EOF'
#!/bin/bash
hostname machine1
exec "$@"
EOF
chmod +x "$work/agent" "$work/first"
control=10.77.0 # the network by which mpirun talks to its daemons
# In the background, so that a signal to the test is dealt with at once; its status in $status.
cluster() { # OPTION-OF-MPIRUN... PROGRAM [ARGUMENT]...
    begin_cluster "$@"
    end_cluster
}
begin_cluster() {
    { run ip netns exec ${space}1 unshare --uts "$work/first" mpirun.openmpi --mca plm_rsh_agent "$work/agent" --host "$control.1:2,$control.2:2" \
        --mca oob_tcp_if_include "$control.0/24" --map-by node --bind-to none -x PATH -x STRATA_MCA_mca_component_path \
        -x STRATA_MCA_mca_param_files "$@"; echo "$status" >"$work/status"; } &
    job=$!
}
end_cluster() { wait "$job"; status=$(<"$work/status"); }
