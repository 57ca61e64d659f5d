#!/bin/bash
# Connections of btl_openib on a real kernel's verbs, by each method: the first messages of all to all at once, fewer
# connections kept than there are peers, a peer that is killed while it connects. Requests of librdmacm that
# somebody else makes up are refused and counted.
. "$STRATA_SOURCE/tests/guest/lib.sh"

cat >"$work/all" <<'END_OF_SCRIPT'
# All talk to all at once: 15 pairs, 30 ends of connections.
report() { python3 "$STRATA_SOURCE/tests/openib/report.py" /tmp/err "$@"; }
# shellcheck disable=SC2153 # of the environment
for method in ud tcp $METHODS; do
    for kept in 0 2; do
        timeout 300 strata-run -n 6 --report-transports=json --mca btl openib,self --mca btl_openib_connect $method \
            --mca btl_openib_max_connected_peers $kept "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 1 1 >/tmp/out 2>/tmp/err ||
            { tail -n 5 /tmp/err && exit 1; }
        [ $kept != 0 ] || [ "$(report sum connections)" = 30 ] || { echo "$(report connect)" && exit 1; }
        [ $kept = 0 ] || [ "$(report sum torn_down)" -ge 10 ] || { echo "$(report sum torn_down) taken down" && exit 1; }
        echo "$method, $kept kept: passed: $(report connect)"
    done
    timeout 200 strata-run --keep-going -n 3 --mca btl openib,self --mca btl_openib_connect $method \
        "$STRATA_BUILD/tests/programs/peer_death" connecting >/tmp/said
    echo "$method, one killed: status $?, $(grep -c "goes on$" /tmp/said) go on"
done
END_OF_SCRIPT
methods=tcp
if grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile"; then methods=rdmacm; else echo "this build has no librdmacm"; fi
methods=${methods#tcp}
expect_status 0 "$guest" -x "METHODS=$methods" bash "$work/all"
grep passed "$work/out"
for method in ud tcp $methods; do
    check "$method: all connected" grep -q "$method, 0 kept: passed" "$work/out"
    check "$method: connections come and go" grep -q "$method, 2 kept: passed" "$work/out"
    check "$method: the others go on without one killed" grep -q "$method, one killed: status 137, 2 go on" "$work/out"
done
# Of receive queues per peer the buffers come back, whether the device has had the last word of a connection or not: those
# of one peer are 1.3 MB, and two may be connected for a moment.
expect_status 0 "$guest" strata-run -n 3 --mca btl openib,self --mca btl_openib_max_connected_peers 1 \
    --mca btl_openib_receive_queues P,8k,40,1,32:P,32k,17,1,16 "$STRATA_BUILD/tests/programs/reconnect" 60
check "buffers come back" test "$(awk '/^rank . holds/ && $4 < 3000' "$work/out" | wc -l)" = 3
if [ -n "$methods" ]; then
    cat >"$work/forged" <<'END_OF_SCRIPT'
timeout 450 strata-run -n 2 --mca btl openib,self --mca btl_openib_connect rdmacm "$STRATA_BUILD/tests/programs/conformance" suite_basic
strata-run -n 3 --report-transports=json --mca btl openib,self --mca btl_openib_connect rdmacm \
    "$STRATA_BUILD/tests/programs/hostile" long >/tmp/out 2>/tmp/err &
job=$!
listeners() { rdma resource show cm_id | grep 'state LISTEN' | grep -o 'src-addr [0-9.]*:[0-9]*' | cut -d' ' -f2; }
for _ in $(seq 100); do
    [ "$(listeners | wc -l)" != 3 ] || break
    sleep 0.1
done
# shellcheck disable=SC2046 # a word for each
"$STRATA_BUILD/tests/openib/connect/forge_cm" 3 $(listeners)
echo "the forger: status $?"
wait $job
echo "the job: status $?"
grep -v '^running$\|^{' /tmp/err
python3 -c 'import json
print("refused", sum(t.get("refused", 0) for l in open("/tmp/err") if l.startswith("{") for t in json.loads(l)["transports"]))'
END_OF_SCRIPT
    expect_status 0 "$guest" bash "$work/forged"
    check "conformance over rdmacm" grep -q "cases passed on 2 ranks" "$work/out"
    out_has "^the forger: status 0"; out_has "^the job: status 0"
    check "forged requests: $(cat "$work/out")" awk '$1 == "forged" { made = $2; rejected = $4 } $1 == "refused" { refused = $2 }
        END { exit !(made >= 5 && rejected == made && refused >= made) }' "$work/out"
    check "nobody says a word of them" test "$(wc -l <"$work/out")" = 5
    cat "$work/out"
fi
finish
