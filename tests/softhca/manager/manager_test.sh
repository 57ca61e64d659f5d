#!/bin/bash
# The connection manager: case by case (manager.c), what is written to it at random, and programs of librdmacm, unmodified.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/manager/manager
[ -x "$program" ] || skip "not built: libibverbs is missing"
soft 20 "$program" list >"$work/list" || skip "$(tail -n 1 "$work/list")"
while read -r name; do
    faults=
    [ "$name" != down ] || faults='port soft0 1 down'
    SOFTHCA_FAULTS=$faults single 30 '^passed$' "$program" "$name"
done <"$work/list"
single 60 '^passed: ' "$STRATA_BUILD/tests/softhca/fuzz/manager_fuzz" 3 "${FUZZ_SEED:-1}"
soft 10 env SOFTHCA_CM=no "$program" agreed >"$work/out" 2>&1 && fail "SOFTHCA_CM=no: there is a manager" "$work/out"

# Datagram sockets over RDMA. The server never ends. Over InfiniBand only: librdmacm 44 makes an address handle without a GRH
# (rsocket.c, ds_add_qp_dest), which RoCE refuses.
echo_comes() { soft 30 udpong -s "$1" -p "$port" -S 1000 -C 100 >"$work/client" 2>&1; }
echoes() { # ADDRESS
    next_port
    soft_behind 30 udpong -b "$1" -p "$port" -S 1000 -C 100 >"$work/server" 2>&1
    pids=($!)
    n_checks=$((n_checks + 1))
    wait_until echo_comes "$1" || fail "udpong over $1" "$work/server" "$work/client"
    kill "${pids[0]}"
    wait "${pids[0]}" 2>/dev/null
    pids=()
}

command -v rping >/dev/null || { echo "not run: rping and others (rdmacm-utils)" && finish; }
for link in ib:127.0.0.1 roce:127.0.0.1 roce:10.42.0.1; do
    export SOFTHCA_LINK=${link%%:*}
    talk "${link#*:}" rping -s -p @ -a HOST -C 10 -- rping -c -p @ -a HOST -C 10
    talk "${link#*:}" ucmatose -b HOST -p @ -c 20 -- ucmatose -s HOST -p @ -c 20
    talk "${link#*:}" rdma_server -p @ -- rdma_client -s HOST -p @                                  # each call waits
    talk "${link#*:}" rstream -b HOST -p @ -S 4096 -C 100 -- rstream -s HOST -p @ -S 4096 -C 100 # sockets over RDMA
    talk "${link#*:}" udaddy -b HOST -c 5 -- udaddy -s HOST -c 5
    [ "$SOFTHCA_LINK" = roce ] || echoes "${link#*:}"
done
# perftest's server listens for each of two connections in turn. A client that comes between the two is refused and ends, and the next
# one would be taken for the second half of the first: it takes a new server.
talk_anew=yes
! command -v ib_send_lat >/dev/null || talk 127.0.0.1 ib_send_lat -R -F -C -n 100 -p @ -- ib_send_lat -R -F -C -n 100 -p @ HOST
finish
