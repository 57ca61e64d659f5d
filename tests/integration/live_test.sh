#!/bin/bash
# strata-info --live: a rank that waits, one that is busy, one that calls nothing; who may not ask; processes that do not answer.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
reporting=$STRATA_BUILD/tests/programs/reporting

start() { # MODE BTL: sets job, pid0 and pid1
    rm -f "$work/end"
    strata-run -n 2 --mca btl "$2,self" sh -c 'echo $$ >'"$work"'/pid.$PMIX_RANK; exec "$@"' - "$reporting" "$1" "$work/end" \
        >"$work/job" 2>&1 </dev/null &
    job=$!
    wait_until grep -q '^ready' "$work/job" || fail "no job of mode $1"
    pid0=$(cat "$work/pid.0") pid1=$(cat "$work/pid.1")
}
end() {
    touch "$work/end"
    wait "$job" || fail "the job failed"
}
# Asks a rank that answers. On a busy machine it may get no processor within the 3 s that strata-info waits: it is asked again then.
live() { # ARGUMENTS-OF-strata-info...
    for _ in 1 2 3 4 5 6 7 8; do
        run strata-info "$@"
        [ "$status" = 1 ] && grep -q "has made no call of Strata's for 3 s" "$work/err" || break
    done
    check "strata-info $*: exit status $status" test "$status" = 0
}

# --- ranks that communicate, and one that sleeps ----------------------------------------------------------------------
start busy sm
for pid in $pid0 $pid1 $pid0; do
    live --live "$pid"
    out_has "^process $pid, by the kernel$"
    out_has ' sm  *[1-9][0-9]* '
    out_has 'btl_sm: '
done
live --json --live "$pid1"
check "the JSON" python3 - "$work/out" "$pid1" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
assert j["pid"] == int(sys.argv[2]) and len(j["contexts"]) == 1
c = j["contexts"][0]
peer = [p for p in c["peers"] if p["rank"] == 0][0]
assert c["rank"] == 1 and "sm" in peer["by"] and peer["messages_sent"] > 0 and peer["bytes_received"] > 0, peer
assert sum(m["bytes"] for m in c["memory"]) > 1000 and j["process"]["private"] > 100000 and c["counters"]
PY
live --live "$pid0"
# Another user's question is not answered.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && [ -x /usr/bin/python3 ]; then
    check "nothing for another user" setpriv --reuid=65534 --clear-groups /usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect("\0strata-live-%s-0" % sys.argv[1])
s.settimeout(300)
sys.exit(s.recv(1) != b"")' "$pid0"
fi
# Somebody who asks and leaves, and one who does not read.
check "who leaves" python3 -c '
import socket, sys
for i in range(5):
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0strata-live-%s-0" % sys.argv[1])
    s.close()' "$pid0"
live --live "$pid0"
end

start wait tcp
live --live "$pid1" # waits in Strata for a message
out_has '^rank 1 on '
expect_status 1 strata-info --live "$pid0" # calls nothing
err_has "process $pid0 has made no call of Strata's for 3 s"
out_has '  private  *[1-9]'
live --live "$pid1"
end

# --- who does not answer ----------------------------------------------------------------------------------------------
expect_status 1 strata-info --live $$; err_has "process $$ does not listen"
# A name that another process has taken.
python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind("\0strata-live-%s-0" % sys.argv[1])
s.listen()
open(sys.argv[2], "w").close()
time.sleep(600)' $$ "$work/taken" &
other=$!
wait_until test -e "$work/taken"
expect_status 1 strata-info --live $$; err_has "process $$ does not listen"
kill $other
# A process that accepts nothing, as one that is stopped: the question after the last that its queue takes ends as well.
python3 -c '
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind("\0strata-live-%d-0" % os.getpid())
s.listen(0)
open(sys.argv[1], "w").close()
time.sleep(600)' "$work/stopped" &
other=$!
wait_until test -e "$work/stopped"
for _ in 1 2; do
    expect_status 1 strata-info --live $other
    err_has "process $other has made no call of Strata's for 3 s"
done
kill $other
expect_status 2 strata-info --live x; err_has 'takes a process id, not "x"'
expect_status 2 strata-info --live 1 --counters; err_has "stands alone"
finish
