#!/bin/bash
# On a real kernel: of the GIDs of an IPv6 and an IPv4 address the one that gid_index names. And the interface below the only device
# gets another IP address, and so the port another GID, at both ends at once: under two ranks that have not spoken yet, and in the
# middle of messages that are kept. Neither finds the other by what it has published. Whichever method connects, all that is sent
# arrives.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
methods='ud tcp'
if grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile"; then methods='ud tcp rdmacm'; else echo "this build has no librdmacm"; fi

# ---- of several GIDs the one that a parameter names: the report says it, and of the queue pairs the device
ip addr add fd00::1/64 dev v0 nodad
gids=/sys/class/infiniband/rxe0/ports/1/gids
for gid in fd00::1=fd00:0000:0000:0000:0000:0000:0000:0001 ::ffff:10.77.0.10=0000:0000:0000:0000:0000:ffff:0a4d:000a; do
    index=
    for _ in $(seq 600); do
        index=$(cd $gids && grep -lx "${gid#*=}" -- * 2>/dev/null | sort -n | head -n 1)
        [ -z "$index" ] || break
        sleep 0.1
    done
    gid=${gid%%=*}
    expect_status 0 "${openib[@]}" --report-transports=json -n 2 --mca btl_openib_gid_index "$index" \
        env "LD_PRELOAD=$STRATA_BUILD/tests/openib/connect/.libs/print_path.so" strata-perf latency --check --batches=1 --iters=3 --sizes=8:64k
    check "both report the GID of $gid" test "$(grep -c "\"gid\":\"$gid\"" "$work/err")" = 2
    check "four paths" test "$(grep -c '^path: ' "$work/err")" = 4
    check "all to $gid" test "$(grep -c "^path: .*gid_index $index, to $gid\$" "$work/err")" = 4
done
ip addr del fd00::1/64 dev v0

# ---- another address
old=10.77.0.10 new=10.77.0.20
moves() { # METHOD later|long
    rm -f "$work/go"
    "${openib[@]}" --report-transports=json -n 2 --mca btl_openib_connect "$1" --mca pml_ob1_path_keep 1 \
        "$STRATA_BUILD/tests/programs/hostile" "$2" "$work/go" &
    for _ in $(seq 1200); do
        [ "$(grep -c '^running' "$work/err")" != 2 ] || break
        sleep 0.1
    done
    ip addr del $old/24 dev v0
    sleep 1 # for messages to fail meanwhile; if none does the test shows less
    ip addr add $new/24 dev v0
    sleep 1
    touch "$work/go"
    wait $!
}
report() { python3 "$STRATA_SOURCE/tests/openib/report.py" "$work/err" "$@"; }
for method in $methods; do
    for mode in $(form long "later long"); do
        expect_status 0 moves "$method" $mode
        if [ $mode = later ]; then
            check "$method: both have heard of the other's address" test "$(report sum moved)" = 2
        else
            check "$method: both have heard of the other's address" test "$(report sum moved)" -ge 2
            check "$method: over connections that were made again" test "$(report sum connections)" -ge 4
        fi
        echo "$method, $mode: moved $(report sum moved), connections $(report sum connections)"
        swap=$old old=$new new=$swap
    done
done
finish
