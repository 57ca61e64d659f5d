#!/bin/bash
# Both sides of strata-miba: server and client, settings that differ, a peer that goes, results that cannot be written.
. "$STRATA_SOURCE/tests/miba/lib.sh" || exit 1
few=("${quick[@]}" --op send --transport RC --values 8)

server() { # ARGS...: in the background, listening
    next_port
    soft_behind 60 "$tool" --server --tcp-port "$port" "$@" >"$work/server" 2>&1
    pids=($!)
    check "the server listens" wait_until listens "$port"
}
server_ends() { # STATUS
    local status=0
    wait "${pids[0]}" || status=$?
    pids=()
    check "the server's exit status is $status instead of $1" test "$status" = "$1"
}

server
miba 0 latency bandwidth qp "${few[@]}" --connect localhost --tcp-port "$port" --json
lines '{o["test"] for o in r if o["status"] == "ok"} == {"latency", "bandwidth", "qp"}'
server_ends 0
# The server takes what it was not given from its client, and refuses what differs; both name it.
server --samples 3
miba 0 latency "${few[@]}" --connect localhost --tcp-port "$port"; out_has '^latency +send RC'
server_ends 0
server --window 32
miba 2 bandwidth "${few[@]}" --window 16 --connect localhost --tcp-port "$port"
err_has 'the settings differ: --window is 32 at the server and 16 at the client'
server_ends 2
check "the server names the setting" grep -q -- '--window is 32 at the server and 16 at the client' "$work/server"

# Loaders want processors of the other side. Another address of this machine is taken for another one.
if [ "$(nproc)" -ge 2 ]; then
    server
    miba '[01]' incast "${quick[@]}" --connect 127.0.0.2 --tcp-port "$port" --json
    lines 'not [print(o) for o in r if o["value"] == 2 and "scheduler" in o.get("reason", "")]'
    server_ends 0
fi
next_port
taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+' | sed -n 2p)" timeout 600 env LD_PRELOAD="$preload" "$tool" --server --tcp-port "$port" \
    >"$work/server" 2>&1 </dev/null &
pids=($!)
check "the server listens" wait_until listens "$port"
miba '[01]' incast "${quick[@]}" --connect 127.0.0.2 --tcp-port "$port" --json
lines '[o["reason"] for o in r if o["value"] == 2 and o["status"] != "failed"] == ["scheduler, not adapter: 2 threads want a processor each, the other side has 1"]'
server_ends 0

# One of another version; a port that another server has.
server
exec 9<>"/dev/tcp/localhost/$port"
echo 'hello 1 {}' >&9
check "the client is told why" grep -q '^no: the client has protocol 1, the server [0-9]*: one is of another version' <&9
server_ends 2
exec 9>&-
server
miba 2 --server --tcp-port "$port"; err_has "port $port of this machine: cannot listen: Address already in use"
miba 0 qp "${few[@]}" --connect localhost --tcp-port "$port"
server_ends 0

# Nobody listens; who listens is another program.
next_port
miba 2 latency "${few[@]}" --connect localhost --tcp-port "$port"; err_has "no server at localhost port $port: Connection refused"
miba 2 latency "${few[@]}" --connect localhost --tcp-port no-such-port; err_has 'localhost port no-such-port'
# One that says nothing, one that leaves, and one that says something else.
other() { # WORDS SECONDS: listens at the port
    next_port
    python3 -c 'import socket, sys, time
s = socket.create_server(("localhost", int(sys.argv[1])))
c = s.accept()[0]
c.sendall(sys.argv[2].encode())
time.sleep(float(sys.argv[3]))' "$port" "$@" &
    pids=($!)
    check "the other program listens" wait_until listens "$port"
}
other '' 600
miba 1 latency "${few[@]}" --timeout 1 --connect localhost --tcp-port "$port"; err_has 'no server of strata-miba answers there'
kill "${pids[0]}"
other '' 0
miba 1 latency "${few[@]}" --connect localhost --tcp-port "$port"; err_has 'no server of strata-miba answers there'
other $'220 mail ready\n' 600
miba 2 latency "${few[@]}" --connect localhost --tcp-port "$port"; err_has 'what answers there is not strata-miba: "220 mail ready"'
kill "${pids[0]}"
pids=()
server
exec 9<>"/dev/tcp/localhost/$port"
echo "GET / HTTP/1.0" >&9
server_ends 2
check "what is not a client is said" grep -q 'the client is not strata-miba: it says "GET' "$work/server"
exec 9>&-

# The peer goes in the middle of a case: what was measured is kept, and the JSON is whole. A case takes a second.
several=("${few[@]}" --values "1,8,16,32,64,128" --samples 1001 --time 1000)
has_result() { grep -q '"status": *"ok"' "$work/out"; }
peer_goes() { # WHAT TEST ARGS...: killed after a first result of the client
    local what=$1 client status=0
    server
    soft_behind 60 "$tool" "${@:2}" --connect localhost --tcp-port "$port" --json >"$work/out" 2>"$work/err"
    client=$!
    check "a first result" wait_until has_result
    kill -9 "$(cat "/proc/${pids[0]}/task/${pids[0]}/children")" 2>/dev/null
    wait "${pids[0]}" 2>/dev/null
    pids=("$client")
    wait "$client" || status=$?
    pids=()
    check "$what ends with 1, not $status" test "$status" = 1
    err_has 'the peer is lost'
}
peer_goes "the client" latency "${several[@]}"
lines 'd[0]["tool"] == "strata-miba" and d[-1]["status"] == 1 and "the peer is lost" in d[-1]["error"]'
lines 'r[0]["status"] == "ok" and len(r) < 6'

# It goes while the client sleeps until it sends.
peer_goes "the client that sleeps" events "${few[@]}" --size 8 --samples 1001 --time 1000
lines 'r[0]["status"] == "ok" and d[-1]["status"] == 1'

# It goes, or does nothing, while the client's tests do not need it.
# A side has five seconds, which a busy machine does not take from it before it is stopped; the cases take twenty.
for how in KILL STOP; do
    server
    limit=60
    [ "$how" = KILL ] || limit=5
    soft_behind 60 "$tool" qp "${quick[@]}" --values 1,2,4,8,16,32,64,128,256,512 --samples 1001 --time 6000 --timeout "$limit" \
        --connect localhost --tcp-port "$port" --json >"$work/out" 2>"$work/err"
    client=$!
    check "a first result" wait_until has_result
    other=$(cat "/proc/${pids[0]}/task/${pids[0]}/children")
    kill -"$how" "$other"
    status=0
    wait "$client" || status=$?
    check "the client of a server that got SIG$how ends with 1, not $status" test "$status" = 1
    err_has 'the peer is lost: (it has ended|it gave no sign of life for 5 s)'
    lines 'd[-1]["status"] == 1 and len([o for o in r if o["status"] == "ok"]) < 20'
    kill -KILL "$other" 2>/dev/null
    wait "${pids[0]}" 2>/dev/null
    pids=()
done

# A peer that is there and does nothing, at a batch of both sides and at the start of a case.
server
soft_behind 60 "$tool" latency "${several[@]}" --timeout 5 --connect localhost --tcp-port "$port" --json >"$work/out" \
    2>"$work/err"
client=$!
check "a first result" wait_until has_result
stopped=$(cat "/proc/${pids[0]}/task/${pids[0]}/children")
kill -STOP "$stopped"
status=0
wait "$client" || status=$?
check "the client of a stopped server ends with 1, not $status" test "$status" = 1
err_has 'the peer is lost: (nothing was completed|it gave no sign of life) for 5 s'
lines 'd[-1]["status"] == 1'
kill -KILL "$stopped"
wait "${pids[0]}" 2>/dev/null
pids=()

# The same where both sides are here: the tool ends, too. In tests that do not need the other side it may be noticed at the end only.
has_ended() { ! kill -0 "${pids[0]}" 2>/dev/null; }
for what in "latency ${several[*]}" "qp ${quick[*]} --values 1,2,4 --samples 301 --time 600"; do
    # shellcheck disable=SC2086 # words
    soft_behind 60 "$tool" $what --timeout 5 --json >"$work/out" 2>"$work/err"
    pids=($!)
    check "a first result" wait_until has_result
    leads=$(cat "/proc/${pids[0]}/task/${pids[0]}/children")
    stopped=$(cat "/proc/${leads% }/task/${leads% }/children")
    kill -STOP "$stopped"
    check "a tool whose other side is stopped ends" wait_until has_ended
    kill -KILL "$stopped" 2>/dev/null
    status=0
    wait "${pids[0]}" || status=$?
    pids=()
    check "and with 1, not $status" test "$status" = 1
    err_has 'the peer is lost: (nothing was completed for 5 s|it gave no sign of life for 5 s|it was stopped$)'
done

# Files and disks.
miba 1 latency "${few[@]}" -o "$work/no/such/folder"; err_has "no/such/folder: cannot be written: No such file"
miba 1 qp "${few[@]}" -o /dev/full; err_has '/dev/full: results cannot be written: No space left on device'
miba 1 qp latency "${few[@]}" --json -o /dev/full; err_has 'No space left on device'
status=0
soft 60 "$tool" qp "${few[@]}" >/dev/full 2>"$work/err" || status=$?
check "a full stdout: 1, not $status" test "$status" = 1
err_has 'standard output: results cannot be written: No space left on device'
miba 1 qp "${few[@]}" -o "$work"; err_has "$work: cannot be written: Is a directory"
# A disk that is full after some results: these stay in the file, all are on stdout, and the run can go on elsewhere.
cat >"$work/small.sh" <<'SH'
mount -t tmpfs -o size=4k none "$1" || exit 77
status=0
LD_PRELOAD=$3 "${@:4}" -o "$1/results" || status=$?
cp "$1/results" "$2"
exit "$status"
SH
several=(qp cq "${quick[@]}" --values "1,2,4,8,16,32,64,128")
mkdir "$work/small"
if unshare --mount true 2>/dev/null && [ "$(getconf PAGESIZE)" = 4096 ]; then
    status=0
    timeout -k 2 "$job_limit" unshare --mount bash "$work/small.sh" "$work/small" "$work/kept" "$preload" "$tool" "${several[@]}" --json \
        >"$work/out" 2>"$work/err" </dev/null || status=$?
    if [ "$status" != 77 ]; then
        check "a disk that gets full: 1, not $status" test "$status" = 1
        err_has 'small/results: results cannot be written: No space left on device'
        out_has '^# results that were measured until then'
        out_has '^qp_create +entries 1 +-?[0-9]'
        check "the file has results" test "$(wc -l <"$work/kept")" -gt 6
        measured=$(grep -cE '^(qp|cq)' "$work/out")
        check "each result of the file is on stdout, too" test "$measured" -ge "$(($(wc -l <"$work/kept") - 1))"
        cp "$work/kept" "$work/results"
        miba 0 "${several[@]}" --json -o "$work/results" --resume
        check "the results that were kept" cmp <(head -n 5 "$work/kept") <(head -n 5 "$work/results")
        lines 'd[-1] == {"status": 0, "results": len(r)} and len(r) > 24' "$work/results"
    fi
fi
finish
