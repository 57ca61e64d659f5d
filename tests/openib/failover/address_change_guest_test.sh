#!/bin/bash
# On a real kernel: of the GIDs of an IPv6 and an IPv4 address the one that gid_index names. And the interface below the only device
# gets another IP address, and so the port another GID, at both ends at once: under two ranks that have not spoken yet, and in the
# middle of messages that are kept. Neither finds the other by what it has published. Whichever method connects, all that is sent
# arrives.
. "$STRATA_SOURCE/tests/guest/lib.sh"

methods='ud tcp'
if grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile"; then methods="$methods rdmacm"; else echo "this build has no librdmacm"; fi
cat >"$work/moves" <<'END_OF_SCRIPT'
# Of several GIDs the one that a parameter names: the report says it, and of the queue pairs the device.
ip addr add fd00::1/64 dev v0 nodad
gids=/sys/class/infiniband/rxe0/ports/1/gids
for gid in fd00::1=fd00:0000:0000:0000:0000:0000:0000:0001 ::ffff:10.77.0.10=0000:0000:0000:0000:0000:ffff:0a4d:000a; do
    index=
    for _ in $(seq 50); do
        index=$(cd $gids && grep -lx "${gid#*=}" -- * 2>/dev/null | sort -n | head -n 1)
        [ -z "$index" ] || break
        sleep 0.1
    done
    timeout 100 strata-run --report-transports=json -n 2 --mca btl openib,self --mca btl_openib_gid_index "$index" \
        env "LD_PRELOAD=$STRATA_BUILD/tests/openib/connect/.libs/print_path.so" strata-perf latency --check --batches=1 --iters=3 --sizes=8:64k 2>/tmp/err >/tmp/out
    status=$?
    echo "gid ${gid%%=*}: status $status, reported by $(grep -c "\"gid\":\"${gid%%=*}\"" /tmp/err)," \
        "$(grep -c "^path: .*gid_index $index, to ${gid%%=*}\$" /tmp/err) paths of $(grep -c '^path: ' /tmp/err)"
    echo "gid_index $index:" && grep -v '^{' /tmp/err
done
ip addr del fd00::1/64 dev v0
old=10.77.0.10 new=10.77.0.20
for method in $METHODS; do
    for mode in later long; do
        rm -f /tmp/go
        timeout 250 strata-run --report-transports=json -n 2 --mca btl openib,self --mca btl_openib_connect "$method" \
            --mca pml_ob1_path_keep 1 "$STRATA_BUILD/tests/programs/hostile" $mode /tmp/go >/tmp/out 2>/tmp/err &
        job=$!
        for _ in $(seq 300); do
            [ "$(grep -c '^running' /tmp/err)" != 2 ] || break
            sleep 0.1
        done
        ip addr del $old/24 dev v0
        sleep 1
        ip addr add $new/24 dev v0
        sleep 1
        touch /tmp/go
        wait $job
        echo "$method, $mode: status $?"
        python3 -c 'import json, sys
all = [t for l in open("/tmp/err") if l.startswith("{") for t in json.loads(l)["transports"]]
print(sys.argv[1] + ": moved", sum(t.get("moved", 0) for t in all), "connections", sum(t.get("connections", 0) for t in all))' "$method, $mode"
        grep -v '^{' /tmp/err
        swap=$old old=$new new=$swap
    done
done
END_OF_SCRIPT
expect_status 0 "$guest" -x "METHODS=$methods" bash "$work/moves"
for gid in fd00::1 ::ffff:10.77.0.10; do
    check "the GID of $gid is used" grep -q "^gid $gid: status 0, reported by 2, 4 paths of 4$" "$work/out"
done
grep "^gid " "$work/out"
for method in $methods; do
    check "$method: the first message arrives" grep -q "^$method, later: status 0" "$work/out"
    check "$method: both have heard of the other's address" grep -q "^$method, later: moved 2" "$work/out"
    check "$method: all messages arrive" grep -q "^$method, long: status 0" "$work/out"
    check "$method: over connections that were made again" grep -qE "^$method, long: moved [2-9] connections ([4-9]|..)$" "$work/out"
done
finish
