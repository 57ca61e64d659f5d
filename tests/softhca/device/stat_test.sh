#!/bin/bash
# softhca-stat and the control socket: what is listed, what commands do, and what neither a broken process nor bad input does.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
set -e
command -v ibv_rc_pingpong >/dev/null || skip "no ibverbs-utils"
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# field PID EXPRESSION: from the JSON form, of the process p
field() {
    softhca-stat --json | python3 -c '
import json, sys
p = [p for p in json.load(sys.stdin)["processes"] if p["pid"] == int(sys.argv[1])][0]
print(eval(sys.argv[2]))' "$@"
}
is_empty() { [ "$(softhca-stat --json | tr -d ' \n')" = '{"processes":[]}' ]; }
# A program that has a queue pair and waits for its peer, which never comes.
start() {
    next_port
    LD_PRELOAD=$preload ibv_rc_pingpong -p "$port" >/dev/null 2>&1 &
    pids+=($!)
    wait_until field $! 'p["queue_pairs"]["total"] or 1/0' || fail "process $! is not listed"
}
command_is() { # PID COMMAND status answer
    local status=0 answer
    answer=$(softhca-stat --fault "$1" "$2" 2>&1) || status=$?
    [ "$status" -eq "$3" ] || fail "command '$2': status $status: $answer"
    [[ $answer == $4* ]] || fail "command '$2': $answer"
}

is_empty || fail "an empty fabric is not empty"

start
first=${pids[0]}
[ "$(field "$first" 'p["queue_pairs"]["total"], p["queue_pairs"]["init"], p["completion_queues"], p["memory_regions"]')" = \
    '(1, 1, 1, 1)' ] || fail "objects: $(softhca-stat)"
[ "$(field "$first" 'p["bytes_registered"] >= 4096 and p["bytes_adapter"] > 0')" = True ] || fail "bytes: $(softhca-stat)"
[ "$(field "$first" 'p["program"]')" = ibv_rc_pingpong ] || fail "program"
softhca-stat | grep -q "^ *$first ibv_rc_pingpong .* $SOFTHCA_FABRIC\$" || fail "the table: $(softhca-stat)"
# Without a fabric's name: all of them, whatever is in the names.
[ "$(env -u SOFTHCA_FABRIC softhca-stat --json | python3 -c '
import json, sys
print([p["pid"] for p in json.load(sys.stdin)["processes"] if p["fabric"] == sys.argv[1]])' "$SOFTHCA_FABRIC")" = "[$first]" ] ||
    fail "all fabrics: $(env -u SOFTHCA_FABRIC softhca-stat)"
SOFTHCA_FABRIC=another-$$ softhca-stat --json | grep -q "\"pid\": $first," && fail "another fabric lists it"
echo "listing: ok"

command_is "$first" 'qp 3' 0 ok
command_is "$first" 'drop 10' 0 ok
command_is "$first" 'port soft0 1 down' 0 ok
[ "$(field "$first" 'p["troubles"]')" = "[{'device': 0, 'port': 1, 'state': 'down'}]" ] || fail "a port that is down"
command_is "$first" 'port soft0 1 up' 0 ok
[ "$(field "$first" 'p["troubles"]')" = '[]' ] || fail "a port that is up again"
command_is "$first" clear 0 ok
for bad in '' nonsense 'qp' 'qp x' 'qp -1' 'qp 1 2' 'port soft0 3 down' 'port soft9 1 down' 'port soft0 1' 'address soft0 1' 'address soft0 1 200' 'address soft0 0 1' 'device soft0' 'a b c d e f'; do
    command_is "$first" "$bad" 1 error
done
command_is $$ 'qp 3' 1 'softhca-stat: process'
status=0
softhca-stat --nonsense >/dev/null 2>&1 || status=$?
[ $status -eq 2 ] || fail "an unknown option: status $status"
echo "commands: ok"

# Who connects and says nothing, or too much, or slowly, stops nobody.
python3 - "$SOFTHCA_FABRIC" <<'END' || fail "the control socket"
import re, socket, sys, time
name = [m[1] for m in (re.search('@(softhca-.*-' + re.escape(sys.argv[1]) + r'-\d+)$', line) for line in open('/proc/net/unix')) if m][0]
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(300)
    s.connect('\0' + name)
    return s
slow = connect()
slow.sendall(b'rnr')
time.sleep(0.3)
for _ in range(300):
    connect().close()
silent = [connect() for _ in range(20)]
long = connect()
long.sendall(b'x' * 1000)
try:
    assert long.recv(10) == b'', 'a line without end is answered'
except ConnectionResetError:
    pass
slow.sendall(b' 0\nclear\n')
answer = b''
while answer.count(b'\n') < 2:
    answer += slow.recv(100)
assert answer == b'ok\nok\n', answer
END
echo "control socket: ok"

# Faults from the environment.
down=$(LD_PRELOAD=$preload SOFTHCA_FAULTS='port soft0 1 down' ibv_devinfo) || fail "ibv_devinfo: $down"
grep -q PORT_DOWN <<<"$down" || fail "SOFTHCA_FAULTS: $down"
LD_PRELOAD=$preload SOFTHCA_FAULTS='qp 1' ibv_rc_pingpong >"$work/out" 2>&1 && fail "the first queue pair does not fail"
grep -q "create QP" "$work/out" || fail "the first queue pair: $(cat "$work/out")"
echo "environment: ok"

# A process whose segment is nonsense.
cat >"$work/broken.py" <<'END'
import os, random, socket, struct, sys, time
seed, magic, index, size = int(sys.argv[1]), int(sys.argv[2], 0), int(sys.argv[3]), 512 << 20
random.seed(seed)
fd = os.memfd_create('softhca')
os.ftruncate(fd, size if seed else 4096)
os.pwrite(fd, bytes(random.getrandbits(8) for _ in range(1 << 20 if seed else 64)), 0)
os.pwrite(fd, struct.pack('<QI', magic, index), 0)
s = socket.socket(socket.AF_UNIX)
s.bind('\0softhca-%d-%s-%d' % (os.geteuid(), os.environ['SOFTHCA_FABRIC'], index))
s.listen(int(sys.argv[4]))
time.sleep(3600)
END
magic=$(sed -n 's/^#define HCA_MAGIC *\(0x[0-9a-f]*\).*/\1/p' "$STRATA_SOURCE/softhca/segment.h")
# A process's index follows from its number: these are far from the first one's.
base=$([ "$(field "$first" 'p["index"]')" -gt 500 ] && echo 100 || echo 700)
for seed in 0 1 2 3; do
    python3 "$work/broken.py" $seed "$magic" $((base + seed)) 4000 & # connections that nobody accepts: one for each softhca-stat
    pids+=($!)
done
wait_until bash -c "softhca-stat --json | grep -q '\"index\": $((base + 3)),'" || fail "the broken processes are not there"
for _ in 1 2 3; do
    softhca-stat >"$work/out" || fail "a broken process: status $?"
    LC_ALL=C grep -q '[^[:print:]]' "$work/out" && fail "unprintable characters: $(cat -v "$work/out")"
    softhca-stat --json | python3 -m json.tool >/dev/null || fail "JSON of a broken process"
done
echo "broken processes: ok"

# A process whose backlog is full: it accepts nobody, as if it were stopped.
python3 "$work/broken.py" 4 "$magic" $((base + 4)) 0 &
pids+=($!)
wait_until grep -q "@softhca-.*-$SOFTHCA_FABRIC-$((base + 4))\$" /proc/net/unix || fail "the process with a short backlog is not there"
for _ in 1 2 3; do
    timeout "$job_limit" softhca-stat >"$work/out" || fail "a full backlog: status $?"
done
echo "full backlog: ok"

# Nothing stays behind.
start
kill -9 "${pids[@]}" || fail "a process has ended by itself"
for pid in "${pids[@]}"; do
    status=0
    wait "$pid" 2>/dev/null || status=$?
    [ $status -eq 137 ] || fail "process $pid has ended with status $status, not by the signal"
done
pids=()
wait_until is_empty || fail "killed processes stay: $(softhca-stat)"
echo "after kill: ok"
