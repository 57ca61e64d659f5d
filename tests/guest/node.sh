#!/bin/bash
# In the guest, on the host's file system: makes the network and its RDMA devices, then runs the command (node 1) or serves
# on-node (node 2). Started by init.sh. The control folder holds: settings, environment.sh, command.sh (from run); ready, status,
# error, stdout, stderr (for run).
set -eu
control=/run/guest
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
node=1 nodes=1 devices=1 netem=
. "$control/settings"
here=$(cat "$control/source")
export PATH
exec 2>>"$control/error"

up() { # interface address
    ip addr add "$2/24" dev "$1"
    ip link set "$1" up
}

# A wire keeps packets in order. A veth pair does not: who sends queues them for the processor it runs on, so a connection whose
# sender changes processors is overtaken by itself, and Soft-RoCE takes that for loss. Receive packet steering has each flow's
# packets wait for one processor.
in_order() { # interface
    printf '%x' $(((1 << $(nproc)) - 1)) >"/sys/class/net/$1/queues/rx-0/rps_cpus"
}

# A veth pair and a device on its first end. The other end is up, and has an address and a device only when two ends are wanted.
link() { # NUMBER ENDS
    local n=$1 a=$((2 * $1)) b=$((2 * $1 + 1)) i
    ip link add v$a type veth peer name v$b
    in_order v$a
    in_order v$b
    up v$a "10.77.$n.10"
    if [ "$2" = 2 ]; then up v$b "10.77.$n.11"; else ip link set v$b up; fi
    rdma link add rxe$a type rxe netdev v$a
    [ "$2" = 2 ] || return 0
    rdma link add rxe$b type rxe netdev v$b
    # Both addresses are this machine's, so that the kernel would deliver locally and packets never reach the wire, where netem
    # is. The local table is therefore asked last, and what leaves from one address for the other has a table of its own. Those
    # tables are for what starts here (iif lo): packets that come in are still found to be local.
    for i in all v$a v$b; do
        echo 0 >"/proc/sys/net/ipv4/conf/$i/rp_filter"
        echo 1 >"/proc/sys/net/ipv4/conf/$i/accept_local"
    done
    ip route add "10.77.$n.11" dev v$a table $((100 + a))
    ip route add "10.77.$n.10" dev v$b table $((100 + b))
    ip rule add pref 10 iif lo from "10.77.$n.10" lookup $((100 + a))
    ip rule add pref 11 iif lo from "10.77.$n.11" lookup $((100 + b))
    [ "$n" = 0 ] || return 0
    ip rule add pref 20 lookup local
    ip rule del pref 0
}
veth_network() {
    local n
    case $devices in
    1) link 0 1 && interfaces="v0 v1" ;;
    *) for ((n = 0; n < devices / 2; n++)); do
        link $n 2
        interfaces="${interfaces-} v$((2 * n)) v$((2 * n + 1))"
    done ;;
    esac
}

network() {
    ip link set lo up
    printf '10.77.0.10 node1\n10.77.0.11 node2\n' >>/etc/hosts
    echo "node$node" >/proc/sys/kernel/hostname
    if [ "$nodes" = 2 ]; then
        up eth0 10.77.0.1$((node - 1))
        rdma link add rxe0 type rxe netdev eth0
        interfaces=eth0
    else
        veth_network
    fi
    [ -n "$netem" ] || return 0
    local i
    for i in $interfaces; do
        # shellcheck disable=SC2086 # the words of the option
        tc qdisc replace dev "$i" root netem $netem
    done
}

network
ulimit -l unlimited
ulimit -n "$(ulimit -Hn)"
if [ "$node" = 2 ]; then
    mkdir -p /run/guest-agent
    : >"$control/ready"
    exec busybox nc -ll -p 7077 -e "$here/agent.sh"
fi
if [ "$nodes" = 2 ]; then # run bounds the wait
    until (exec 3<>/dev/tcp/node2/7077) 2>/dev/null; do sleep 0.1; done
fi
: >"$control/ready"
set -m # a process group of its own
env -i bash "$control/command.sh" </dev/null >>"$control/stdout" 2>>"$control/stderr" &
status=0
wait $! || status=$?
echo "$status" >"$control/status.new"
mv "$control/status.new" "$control/status"
