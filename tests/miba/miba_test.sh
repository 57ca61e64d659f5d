#!/bin/bash
# strata-miba as a tool: its tests, forms of output, settings, thresholds, and what the device does not have.
# starts first
. "$STRATA_SOURCE/tests/miba/lib.sh" || exit 1

miba 0 --help; out_has 'Exit status: 0'
miba 0 --version; out_has 'strata-miba \(Strata\)'
check "it links nothing of Strata" test "$(ldd "$tool" | grep -c strata)" = 0
# Each test says what it isolates, and has cases.
miba 0 --list
check "34 tests and more" test "$(wc -l <"$work/out")" -ge 34
for name in $(cut -d ' ' -f 1 "$work/out"); do
    soft 60 "$tool" --about "$name" >"$work/about" 2>&1
    check "--about $name" grep -qE "^$name: (Figure|Table|beyond)" "$work/about"
    check "$name has cases" grep -qE "^  $name .*[0-9]$" "$work/about"
done

# All tests, as JSON: each result has its figures, and none is out of order. Beside other work a difference of times may be none, which
# the tool says; nothing else may fail.
miba '[01]' all "${quick[@]}" --values 8,4096 --size 64 --transport RC --json
lines 'd[0]["tool"] == "strata-miba" and d[0]["device"] == "soft0" and d[0]["settings"]["samples"] == "3"'
lines 'd[-1] == {"status": int(any(o["status"] == "failed" for o in r)), "results": len(r)}'
lines 'all(o["q1"] <= o["median"] <= o["q3"] and o["min"] <= o["q1"] and 1 <= o["samples"] <= 3
    for o in r if o["status"] == "ok" and o["test"] != "visibility")'
lines 'not [print(o) for o in r if o["status"] not in ("ok", "marked", "unsupported", "skipped")
    and not o.get("reason", "").startswith("more messages took no more time")]'
lines 'all("reason" in o for o in r if o["status"] != "ok")'
# A difference below nothing is never printed as a result, in no test.
lines 'not [print(o) for o in r if o["status"] == "ok" and o["median"] < 0]'
# Huge pages that the machine does not have are skipped by name.
lines 'all("huge pages are not there" in o["reason"] for o in r if o["variant"] == "huge" and o["status"] == "skipped")'
if [ "$(awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo)" = 0 ]; then
    lines '[o["status"] for o in r if o["variant"] == "huge"] == ["skipped"] * 2'
fi
# Load wants a processor for each side and each loader.
lines 'd[0]["processors"] >= 6 or all(o["status"] == "marked" and "scheduler, not adapter" in o["reason"] for o in r
    if o["test"] == "load" and o["value"] == 4 and o["status"] != "failed")'
lines '{f for f in "cm_resolve cm_connect cm_disconnect qp_create qp_to_rtr qp_destroy cq_create cq_resize register deregister_many post_send \
post_recv poll_empty poll_full".split()} - {o["figure"] for o in r if o["status"] == "ok" and o["unit"] == "ns"} == set()'
lines '{t for t in "cpu translation_1 translation_2 region qps segments scatter max_sge mtu events load inline srq immediate signalling lists \
atomics service visibility incast".split()} - {o["test"] for o in r if o["status"] in ("ok", "marked")} == set()'
lines '{o["op"] for o in r if o["test"] == "atomics" and o["status"] == "ok"} == {"fetch_add", "compare_swap"}'
lines 'any(o["status"] == "ok" for o in r if o["test"] in ("bandwidth", "window", "both_ways"))'
# The writes of softhca become visible with their last byte last.
lines 'all(o["median"] == 0 and o["samples"] > 0 for o in r if o["test"] == "visibility" and o["status"] == "ok")'
lines 'all(o["value"] > 1 or o["status"] == "ok" for o in r if o["test"] == "incast")'
lines 'all(o["unit"] == "MB/s" for o in r if o["test"] in ("bandwidth", "window", "both_ways") and o["status"] != "failed")'

# Operations and transports of a test; UC and UD have its first size, RC all of them; a case has one size.
miba 0 latency qps window "${quick[@]}" --values 8 --window 4 --json
lines '{(o["op"], o["transport"]) for o in r if o["test"] == "latency"} ==
    {("send", "RC"), ("send", "UC"), ("send", "UD"), ("write", "RC"), ("write", "UC"), ("read", "RC")}'
lines '{(o["transport"], o["size"]) for o in r if o["test"] == "window"} == {("RC", 8), ("RC", 65536), ("UC", 8), ("UD", 8)}'
lines '{o["size"] for o in r if o["test"] == "qps" and o["transport"] == "RC"} == {8, 256, 4096, 65536}'
# Counts that no window divides, with several queue pairs, buffers and transports: no batch is left with completions of the one before.
miba 0 qps window signalling lists both_ways cpu translation_2 --samples 5 --timeout 60 --count 7 --window 5 --buffers 3 --size 100 --values 100 \
    --op send,write --json
lines 'd[-1]["status"] == 0 and not any(o["status"] == "failed" for o in r)'
lines '{o["size"] for o in r if o["test"] == "qps"} == {100}'

miba 0 visibility "${quick[@]}" --values 64 --buffers 3; out_has '^visibility +write RC +size 64 +0'

# Tests that have no case with the operation are left out.
miba 0 all "${quick[@]}" --op send --transport UD --values 8 --json
lines 'not any(o["test"] in ("atomics", "visibility") for o in r) and any(o["test"] == "service" for o in r)'

# The other forms.
miba 0 qp latency "${quick[@]}" --values 8 --op send --csv
check "CSV: 4 rows of figures, 17 fields in each" python3 -c "import csv, sys
rows = list(csv.reader(open(sys.argv[1])))
assert rows[0][0] == 'test' and len(rows) >= 6 and all(len(x) == 17 for x in rows), rows" "$work/out"
miba 0 latency "${quick[@]}" --values 8,64 --op read -o "$work/file"
check "results are in the file" grep -qE '^latency +read RC +size 64 +[0-9.]+ (n|u|m)s' "$work/file"
check "and not on stdout" test ! -s "$work/out"

# One processor for both sides: figures of moved data are marked, others are not.
soft 60 taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+' | sed -n 2p)" "$tool" poll_empty latency "${quick[@]}" --op read --values 8 >"$work/out" 2>"$work/err" ||
    fail "one processor" "$work/err"
out_has '^latency +read RC .*scheduler, not adapter: both sides share one processor'
check "calls of one side are not marked" test "$(grep -c '^poll_empty.*scheduler' "$work/out")" = 0

# Memory that softhca writes by stores, several ports and devices, the other link layer.
miba 0 latency "${quick[@]}" --values 8 --op write --memfd 1; out_has '^latency +write RC'
SOFTHCA_LINK=roce SOFTHCA_DEVICES=2 miba 0 qp_connected latency "${quick[@]}" --values 8 --device soft1; out_has '^latency +send UD'
# Several pairs, each with a buffer of its own and so many messages in a row; one queue for both directions; time stamps.
miba 0 latency bandwidth both_ways "${quick[@]}" --values 100 --qps 4 --buffers 4 --burst 16 --op send,write,read
out_has '^latency +read RC'
miba 0 latency "${quick[@]}" --values 8 --one-cq 1 --qps 2 --stamps 1; out_has '^latency +send UC'
# Events of both queues, where a side waits on both.
miba 0 events "${quick[@]}" --size 8 --transport RC; out_has '^events +write_imm RC latency .*events 2 .*us'
out_has '^events +read RC latency .*events 2 .*unsupported: a side waits on one queue only'
miba 0 latency "${quick[@]}" --values 8 --op read --mtu 256; out_has '^latency +read RC'

# Thresholds: a generous one holds; one of nothing does not; one that meets no result does not either.
few=("${quick[@]}" --op send --transport RC --values 8 --samples 3)
held=0
[ "$(nproc)" -ge 2 ] || held=3 # with one processor the figures are marked
miba "$held" latency "${few[@]}" --max latency.8=1000s --min latency=0ns
miba 3 latency "${few[@]}" --max latency.8=0ns; err_has 'latency send RC size 8: latency is .* more than 0'
miba 3 bandwidth "${few[@]}" --min bandwidth.8=1000000GB/s; err_has 'less than'
miba 3 latency "${few[@]}" --max latency.64=1s; err_has 'latency.64=1s: nothing of that name'
miba 2 latency --max latency.8; err_has 'expected NAME.VALUE=LIMIT'
miba 2 latency --max latency.8=2parsec; err_has 'expected a unit'

# What the device does not have is said, and the rest goes on.
SOFTHCA_UD=no SOFTHCA_RESIZE=no miba 0 cq latency "${quick[@]}" --values 8 --op send
out_has '^cq_create +plain +entries 8 +[0-9]'
out_has '^cq +resized +entries 8 +unsupported: ibv_resize_cq: Operation not supported'
out_has '^latency +send UC +size 8 +[0-9]'
out_has '^latency +send UD +size 8 +unsupported: .*ibv_create_qp \(UD\): Operation not supported'
SOFTHCA_MAX_QP_WR=100 miba 0 qp "${quick[@]}" --values 64,128
out_has '^qp_create +entries 64 +-?[0-9]' # a difference of two counts
out_has '^qp +entries 128 +unsupported: 128 entries: the device.s queues have 1 to 100'
SOFTHCA_MAX_SRQ_WR=16 miba 0 srq "${quick[@]}"; out_has '^srq +send RC shared 8 B +qps 1 +-?[0-9]'
SOFTHCA_CM=no miba 0 cm "${quick[@]}"; out_has '^cm +entries 16 +unsupported: rdma_create_event_channel'
miba 0 cm "${quick[@]}" --cm-address 192.0.2.1; out_has '^cm +entries 16 +unsupported: rdma_bind_addr'
# Connections of another device than the one that was asked for are not its own.
SOFTHCA_DEVICES=2 miba 0 cm "${quick[@]}" --device soft1
out_has '^cm +entries 16 +unsupported: 127.0.0.1 leads to device soft0 port 1, not to soft1 port 1'
# The passive end of a connection whose end nobody reports does not wait for it for ever.
if "${CC:-gcc}" -O2 -fPIC -shared -o "$work/lost.so" "$STRATA_SOURCE/tests/miba/data/lost_disconnect.c" -ldl 2>"$work/err"; then
    job_limit=100 preload=$preload:$work/lost.so miba 0 cm "${quick[@]}"
    out_has '^cm_disconnect +entries 16 +[0-9]'
else
    check "lost_disconnect.c lacks nothing but librdmacm" grep -q rdma_cma.h "$work/err"
fi
# So is what the machine does not have.
SOFTHCA_MEMLOCK=1m miba 0 registration "${quick[@]}" --values 64k,2m
out_has '^registration +touched +size 2097152 +skipped: 2097152 bytes cannot be registered'
buffers=$(awk '/^(MemTotal|SwapTotal):/ { kib += $2 } END { print int(kib / 2097152) + 1 }' /proc/meminfo) # of 1 GiB each way
miba 0 latency "${quick[@]}" --op read --values 1g --buffers "$buffers"
out_has '^latency +read RC +size 1073741824 +skipped: [0-9]+ bytes: the machine has [0-9]+ to spare'
# A failure is named by its own verb.
SOFTHCA_FAULTS='mr 1' miba 0 post_recv "${quick[@]}"; out_has '^post_recv +segments 1 +skipped: ibv_reg_mr: Cannot allocate memory'
SOFTHCA_FAULTS='cq 1' miba 0 post_recv "${quick[@]}"; out_has '^post_recv +segments 1 +skipped: ibv_create_cq: Cannot allocate memory'
"${CC:-gcc}" -O2 -Wall -Wextra -Werror -fPIC -shared -o "$work/other.so" "$STRATA_SOURCE/tests/miba/data/other_device.c" -ldl ||
    fail "other_device.c"
OTHER_DEVICE=busy preload=$first$work/other.so:$library miba 1 registration "${quick[@]}" --values 4k
out_has '^registration +touched +size 4096 +failed: ibv_dereg_mr: Device or resource busy'
out_has '^register +untouched +size 4096 +-?[0-9]'
OTHER_DEVICE=regions preload=$first$work/other.so:$library miba 0 registration "${quick[@]}" --values 18446744073709551615
out_has '^registration +touched +size 18446744073709551615 +unsupported: '
# The reason of a sender of an incast is said at once.
SOFTHCA_FAULTS='connections down' miba 1 incast "${quick[@]}"
out_has '^incast +send RC 8 B +senders 1 +failed: the other side: a message of a loader ended with .*retry'
# An object that cannot be made at the other side is said with its reason.
SOFTHCA_FAULTS='qp 1' miba 0 latency "${quick[@]}" --values 8,64 --op write --transport RC
out_has 'size 8 +skipped: .*ibv_create_qp'
out_has 'size 64 +[0-9]'

# Mistakes.
miba 2; err_has 'which test'
miba 2 no_such_test; err_has 'there is no test "no_such_test"'
miba 2 latency --op fly; err_has 'expected send, write'
miba 2 latency --samples 0; err_has 'expected a number from 1'
miba 2 latency --mtu 300; err_has 'expected 256, 512'
miba 2 latency --device hard0; err_has 'there is no device "hard0"; there are: soft0'
check "both sides have no such device, and it is said once" test "$(wc -l <"$work/err")" = 1
miba 2 latency --port 2; err_has 'there is no port 2; it has 1'
finish
