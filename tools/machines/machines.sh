#!/bin/bash
# "Machines" on this one: network namespaces with an address and a host name each, joined by veth. Needs root.
# usage: strata-machines N COMMAND [ARGUMENT]...
# COMMAND runs here and finds in the folder $STRATA_MACHINES:
#   on M COMMAND...          runs on machine M (1 to N), whose address is 10.77.0.M
#   agent HOST COMMAND...    the same as ssh, for launchers: HOST is an address
# Sourced (tests/cluster/lib.sh): the functions only. `machines_skip` says why there can be none, and ends the caller.
PATH=$PATH:/usr/sbin:/sbin

machines_remove() { # SPACE: all machines of that name, and what runs there
    local name
    ip netns list 2>/dev/null | sed -nE "s/^($1[0-9]+)( .*)?\$/\\1/p" | while read -r name; do
        ip netns pids "$name" 2>/dev/null | xargs -r kill -9
        ip netns del "$name" 2>/dev/null
    done
}

# Those of callers that were ended by SIGKILL.
machines_remove_old() {
    local old
    for old in $(ip netns list 2>/dev/null | sed -nE 's/^strata([0-9]+)m[0-9]+( .*)?$/\1/p' | sort -u); do
        kill -0 "$old" 2>/dev/null || machines_remove "strata${old}m"
    done
}

machines_make() { # SPACE N FOLDER-FOR-SCRIPTS. More than two have a switch: machine 0, without a name of its own
    local space=$1 n=$2 dir=$3 m program
    [ "$(id -u)" = 0 ] || machines_skip "network namespaces are made by root"
    for program in ip unshare hostname; do
        command -v $program >/dev/null || machines_skip "$program is not installed (Debian: iproute2 util-linux hostname)"
    done
    machines_remove_old
    for m in $(seq $((n > 2 ? 0 : 1)) "$n"); do
        ip netns add "$space$m" 2>"$dir/err" || machines_skip "no network namespace can be made: $(cat "$dir/err")"
        ip -n "$space$m" link set lo up
    done
    cat >"$dir/on" <<END
#!/bin/bash
m=\$1
shift
exec ip netns exec $space\$m unshare --uts bash -c 'hostname machine\$0; exec "\$@"' "\$m" "\$@"
END
    cat >"$dir/agent" <<END
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
m=\${1##*.}
shift
exec "$dir/on" "\$m" bash -c "\$*"
END
    chmod +x "$dir/on" "$dir/agent"
}

# Joins all machines by interfaces NAME: two by a pair of veth, more by a bridge.
machines_join() { # SPACE N NAME
    local space=$1 n=$2 name=$3 m
    if [ "$n" = 2 ]; then
        ip link add "$name" netns "${space}1" type veth peer name "$name" netns "${space}2"
        return
    fi
    ip -n "${space}0" link add "$name" type bridge && ip -n "${space}0" link set "$name" up || return
    for m in $(seq "$n"); do
        ip link add "$name" netns "$space$m" type veth peer name "$name-$m" netns "${space}0" &&
            ip -n "${space}0" link set "$name-$m" master "$name" up || return
    done
}

machines_address() { # SPACE N NAME NETWORK: NETWORK.M/24 to machine M
    local m
    for m in $(seq "$2"); do
        ip -n "$1$m" addr add "$4.$m/24" dev "$3" && ip -n "$1$m" link set "$3" up || return
    done
}

machines_up() { # SPACE N NAME: waits until the kernel says that they are
    local m tries=0
    for m in $(seq "$2"); do
        tries=0
        until ip -n "$1$m" link show "$3" | grep -q 'state [A-Z]*UP '; do
            [ $((++tries)) -lt 500 ] || return
            sleep 0.02
        done
    done
}

[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

machines_skip() { echo "strata-machines: $*" >&2 && exit 77; }
[[ $# -ge 2 && $1 =~ ^[1-9][0-9]?$ ]] || {
    echo "usage: strata-machines N COMMAND [ARGUMENT]...: runs COMMAND beside N machines (network namespaces), 99 at most" >&2
    exit 2
}
n=$1 space=strata$$m
shift
STRATA_MACHINES=$(mktemp -d) || exit 1
export STRATA_MACHINES
trap 'machines_remove $space; rm -rf "$STRATA_MACHINES"' EXIT
trap 'kill "$job" 2>/dev/null; wait "$job"; exit 143' HUP INT TERM
machines_make $space "$n" "$STRATA_MACHINES"
if [ "$n" -gt 1 ]; then
    { machines_join $space "$n" eth0 && machines_address $space "$n" eth0 10.77.0 && machines_up $space "$n" eth0; } 2>"$STRATA_MACHINES/err" ||
        machines_skip "no veth: $(cat "$STRATA_MACHINES/err")"
fi
"$@" &
job=$!
wait "$job"
