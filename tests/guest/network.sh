# shellcheck shell=bash
# shellcheck disable=SC2154 # the settings
# The guest's network and its RDMA devices: made by node.sh, and made anew between the tests of a batch. Sourced, in the guest, by
# a shell that has node, nodes, devices and netem from the control folder's `settings`.
interfaces=

up() { # interface address
    ip addr add "$2/24" dev "$1"
    ip link set "$1" up
}

# A wire keeps packets in order. A veth pair does not: the sender queues them for the processor it runs on, so a connection whose
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
    add_device v$a rxe$a
    interfaces="$interfaces v$a v$b"
    [ "$2" = 2 ] || return 0
    add_device v$b rxe$b
    # Both addresses are this machine's, so that the kernel would deliver locally and packets never reach the wire, where netem
    # is. The local table is therefore asked last, and packets that leave from one address for the other have a table of their own.
    # Those tables are for packets that start here (iif lo): packets that come in are still found to be local.
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

add_device() { # interface device
    rdma link add "$2" type rxe netdev "$1"
}

set_netem() { # what `tc qdisc ... netem` takes
    local i
    for i in $interfaces; do
        # shellcheck disable=SC2086 # the words of the option
        tc qdisc replace dev "$i" root netem $1
    done
}

network_make() {
    local n
    interfaces=
    if [ "$nodes" = 2 ]; then
        up eth0 10.77.0.1$((node - 1))
        add_device eth0 rxe0
        interfaces=eth0
    elif [ "$devices" = 1 ]; then
        link 0 1
    else
        for ((n = 0; n < devices / 2; n++)); do link $n 2; done
    fi
    [ -z "$netem" ] || set_netem "$netem"
}

# As at the start, whatever a test has done to addresses, links, queueing disciplines and devices. With two nodes the address stays:
# the nodes talk to each other over it.
network_remake() {
    local device pref
    for device in $(rdma link show | grep -o 'rxe[0-9]*' | sort -u); do rdma link delete "$device"; done
    if [ "$nodes" = 2 ]; then
        tc qdisc del dev eth0 root 2>/dev/null
        ip link set eth0 up
        add_device eth0 rxe0
        interfaces=eth0
        [ -z "$netem" ] || set_netem "$netem"
        return
    fi
    for device in /sys/class/net/v*; do
        [ ! -e "$device" ] || ip link del "${device##*/}"
    done
    for pref in 10 11; do
        while ip rule del pref $pref 2>/dev/null; do :; done
    done
    if ip rule del pref 20 2>/dev/null; then ip rule add pref 0 lookup local; fi
    network_make
}
