#!/bin/bash
# Two guests on one network: on-node, verbs traffic between them, loss, and mpirun with on-node as its launch agent.
. "$STRATA_SOURCE/tests/guest/lib.sh"

# ---- on-node: words, folder, environment, streams, status, the end of what it started
mkdir "$work/folder" "$work/kept"
cd "$work/folder" || exit 1
head -c 1000000 /dev/urandom >random
cat >script <<'END'
set -u
on-node node2 hostname
on-node -x node2 'echo "$PWD $COLOUR" "a  b"; echo to stderr >&2; exit 7'; echo "status $?"
on-node node2 no-such-program; echo "status $?"
on-node node2 cat random | cmp - random && echo same
on-node node2 echo from 2 ">$1/file"; cat "$1/file"
on-node node2 'kill -KILL $$'; echo "status $?"
on-node node2 sleep 777 & sleep 1; on-node node2 pgrep -x sleep >/dev/null && echo sleeps; kill %1; wait
for i in $(seq 50); do on-node node2 pgrep -x sleep >/dev/null || { echo gone; break; }; done
on-node node9 true; echo "status $?"
END
expect_status 0 "$guest" --nodes 2 --out "$work/kept" -x COLOUR=blue bash ./script "$work/kept"
check "output of commands on node 2" diff - "$work/out" <<END
node2
$work/folder blue a  b
status 7
status 127
same
from 2
status 137
sleeps
gone
status 255
END
err_has "^to stderr$"; err_has "no-such-program: command not found"; err_has "no connection to node9"
check "written here by node 2" test "$(cat "$work/kept/file")" = "from 2"

# ---- traffic
cat >pingpong <<'END'
on-node node2 "$@" &
for i in $(seq 100); do on-node node2 ss -ltn | grep -q ":18515 " && break; done
"$@" node2 && wait $!
status=$?
tc -s qdisc show dev eth0 | grep -o 'dropped [0-9]*'
exit $status
END
expect_status 0 "$guest" --nodes 2 bash ./pingpong ibv_rc_pingpong -d rxe0 -g 1
check "both sides of ibv_rc_pingpong" test "$(grep -c '^1000 iters' "$work/out")" = 2
out_has "GID ::ffff:10.77.0.10$"; out_has "GID ::ffff:10.77.0.11$"
expect_status 0 "$guest" --nodes 2 --netem "loss 1%" bash ./pingpong ibv_rc_pingpong -d rxe0 -g 1 -n 2000
check "both sides, with loss" test "$(grep -c '^2000 iters' "$work/out")" = 2
check "packets were lost" grep -q 'dropped [1-9]' "$work/out"

# ---- one job over both nodes
if command -v mpirun.openmpi >/dev/null; then
    expect_status 0 "$guest" --nodes 2 mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent on-node --host node1,node2 hostname
    check "ranks on both nodes" test "$(sort "$work/out" | tr '\n' ' ')" = "node1 node2 "
fi
no_files
finish
