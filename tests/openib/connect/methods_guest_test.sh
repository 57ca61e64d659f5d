#!/bin/bash
# Connections of btl_openib on a real kernel's verbs, by each method: the first messages of all to all at once, fewer connections
# kept than there are peers, a peer that is killed while it connects. Forged requests of librdmacm are refused and counted.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
report() { python3 "$STRATA_SOURCE/tests/openib/report.py" "$work/err" "$@"; }
methods='ud tcp'
if grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile"; then methods='ud tcp rdmacm'; else echo "this build has no librdmacm"; fi

for method in $methods; do
    for kept in 0 2; do # of 15 pairs, 30 ends of connections
        expect_status 0 "${openib[@]}" -n 6 --report-transports=json --mca btl_openib_connect "$method" \
            --mca btl_openib_max_connected_peers $kept "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 1 1
        if [ $kept = 0 ]; then
            check "$method: all connected, $(report sum connections)" test "$(report sum connections)" = 30
        else
            check "$method: connections come and go, $(report sum torn_down)" test "$(report sum torn_down)" -ge 10
        fi
        echo "$method, $kept kept: $(report connect)"
    done
    expect_status 137 "${openib[@]}" --keep-going -n 3 --mca btl_openib_connect "$method" "$STRATA_BUILD/tests/programs/peer_death" connecting
    check "$method: the others go on without one killed" test "$(grep -c "goes on$" "$work/out")" = 2
done
# Of receive queues per peer the buffers come back, whether the device has had the last message of a connection or not: those
# of one peer are 1.3 MB, and two may be connected for a moment.
expect_status 0 "${openib[@]}" -n 3 --mca btl_openib_max_connected_peers 1 --mca btl_openib_receive_queues P,8k,40,1,32:P,32k,17,1,16 \
    "$STRATA_BUILD/tests/programs/reconnect" "$(form 20 60)"
check "buffers come back" test "$(awk '/^rank . holds/ && $4 < 3000' "$work/out" | wc -l)" = 3

listeners() { rdma resource show cm_id | grep 'state LISTEN' | grep -o 'src-addr [0-9.]*:[0-9]*' | cut -d' ' -f2; }
forged() {
    local status=0
    rm -f "$work/enough"
    "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_connect rdmacm \
        "$STRATA_BUILD/tests/programs/hostile" long "$work/enough" >/dev/null &
    for _ in $(seq 600); do
        [ "$(listeners | wc -l)" != 3 ] || break
        sleep 0.1
    done
    # shellcheck disable=SC2046 # a word for each
    "$STRATA_BUILD/tests/openib/connect/forge_cm" 3 $(listeners) || status=$?
    touch "$work/enough"
    wait $! && return $status
}
case $methods in *rdmacm)
    if full_form; then
        expect_status 0 "${openib[@]}" -n 2 --mca btl_openib_connect rdmacm strata-conformance --only messages/basic
        check "conformance over rdmacm" grep -q "^[1-9][0-9]* cases passed, 0 failed.* 2 processes$" "$work/out"
    fi
    expect_status 0 forged
    check "forged requests, $(report sum refused) refused: $(cat "$work/out")" awk -v refused="$(report sum refused)" '
        $1 == "forged" { made = $2; rejected = $4 } END { exit !(made >= 5 && rejected == made && refused >= made) }' "$work/out"
    check "nothing is said of them" test "$(grep -cv '^running$\|^{' "$work/err")" = 0
    cat "$work/out" ;;
esac
finish
