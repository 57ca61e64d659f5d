#!/bin/bash
# Two guests on one network: on-node, verbs traffic between them, loss, and mpirun with on-node as its launch agent.
# guest: --nodes 2
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"

# ---- on-node: words, folder, environment, streams, status, the end of what it started
mkdir "$work/folder"
cd "$work/folder" || exit 1
on-node node2 mkdir -p "$work/folder" # each node has files of its own
head -c 1000000 /dev/urandom >random
cat >script <<'END'
set -u
on-node node2 hostname
on-node -x node2 'echo "$PWD" "a  b"; echo to stderr >&2; exit 7'; echo "status $?"
on-node node2 no-such-program; echo "status $?"
on-node node2 cat /bin/bash | cmp - /bin/bash && echo same
on-node node2 'kill -KILL $$'; echo "status $?"
on-node node2 sleep 777 &
until on-node node2 pgrep -x sleep >/dev/null; do :; done
echo sleeps; kill %1; wait
for i in $(seq 600); do on-node node2 pgrep -x sleep >/dev/null || { echo gone; break; }; done
on-node node9 true; echo "status $?"
END
expect_status 0 bash ./script
check "output of commands on node 2" diff - "$work/out" <<END
node2
$work/folder a  b
status 7
status 127
same
status 137
sleeps
gone
status 255
END
err_has "^to stderr$"; err_has "no-such-program: command not found"; err_has "no connection to node9"

# ---- traffic
pingpong() {
    on-node node2 "$@" &
    for _ in $(seq 600); do
        ! on-node node2 ss -ltn | grep -q ":18515 " || break
    done
    "$@" node2 && wait $!
}
expect_status 0 pingpong ibv_rc_pingpong -d rxe0 -g 1
check "both sides of ibv_rc_pingpong" test "$(grep -c '^1000 iters' "$work/out")" = 2
out_has "GID ::ffff:10.77.0.10$"; out_has "GID ::ffff:10.77.0.11$"
both_lose
expect_status 0 pingpong ibv_rc_pingpong -d rxe0 -g 1 -n 2000
check "both sides, with loss" test "$(grep -c '^2000 iters' "$work/out")" = 2
check "packets were lost: $(dropped)" test "$(dropped)" -ge 1

# ---- one job over both nodes
if command -v mpirun.openmpi >/dev/null; then
    expect_status 0 mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent on-node --host node1,node2 hostname
    check "ranks on both nodes" test "$(sort "$work/out" | tr '\n' ' ')" = "node1 node2 "
fi
finish
