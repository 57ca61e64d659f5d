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

# A server and its client, which says where the server is as `-s ADDRESS` or so: both have to succeed.
talk() { # ADDRESS SERVER... -- CLIENT...
    local address=$1 server=() begin status=0 end
    shift
    next_port
    begin=$(now_ms)
    while [ "$1" != -- ]; do server+=("${1//@/$port}") && shift; done
    shift
    set -- "${@//@/$port}"
    soft 30 "${server[@]//HOST/$address}" >"$work/server" 2>&1 &
    pids=($!)
    for end in $(seq 20); do # until it listens, which nothing but its manager knows
        sleep 0.1
        soft 30 "${@//HOST/$address}" >"$work/client" 2>&1 && status=0 && break
        status=$?
        kill -0 "${pids[0]}" 2>/dev/null || break
    done
    wait "${pids[0]}" || status=$?
    pids=()
    if [ "$status" = 0 ]; then checked "${*//HOST/$address}" "$begin"; else fail "$*, try $end: status $status" "$work/server" "$work/client"; fi
}
command -v rping >/dev/null || { echo "not run: rping and others (rdmacm-utils)" && finish; }
for link in ib:127.0.0.1 roce:127.0.0.1 roce:10.42.0.1; do
    export SOFTHCA_LINK=${link%%:*}
    talk "${link#*:}" rping -s -p @ -a HOST -C 10 -- rping -c -p @ -a HOST -C 10
    talk "${link#*:}" ucmatose -b HOST -p @ -c 20 -- ucmatose -s HOST -p @ -c 20
    talk "${link#*:}" rdma_server -p @ -- rdma_client -s HOST -p @                                  # each call waits
    talk "${link#*:}" rstream -b HOST -p @ -S 4096 -C 100 -- rstream -s HOST -p @ -S 4096 -C 100 # sockets over RDMA
done
! command -v ib_send_lat >/dev/null || talk 127.0.0.1 ib_send_lat -R -F -C -n 100 -p @ -- ib_send_lat -R -F -C -n 100 -p @ HOST
finish
