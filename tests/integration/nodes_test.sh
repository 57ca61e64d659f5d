#!/bin/bash
# mca_base_node: ranks of one machine as several nodes. Shared memory within a node, another transport between.
. "$STRATA_SOURCE/tests/integration/lib.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
traffic=$STRATA_BUILD/tests/programs/traffic

by() { # NODES TRANSPORTS OPTION...: by which transport each pair of five ranks is reached
    local nodes=$1 transports=$2
    shift 2
    expect_status 0 strata-run -n 5 "$@" --mca btl "$transports" --mca mca_base_node "$nodes" --report-transports=json "$traffic" alltoall 64 2 1
    python3 - "$work/err" "$nodes" "${transports#sm,}" <<'PY' || fail "$nodes: pairs go by something else"
import json, sys
sizes = [int(n) for n in sys.argv[2].split(",")]
node, left, k = [], 0, -1
for rank in range(5):
    if left == 0:
        k += 1
        left = sizes[min(k, len(sizes) - 1)]
    node.append(k)
    left -= 1
ranks = {r["rank"]: r for r in map(json.loads, (l for l in open(sys.argv[1]) if l.startswith("{")))}
assert sorted(ranks) == list(range(5))
between = sys.argv[3].split(",")[0]
pairs = 0
for a, report in ranks.items():
    for p in report["peers"]:
        if p["rank"] != a:
            assert p["by"] == ("sm" if node[p["rank"]] == node[a] else between), (a, p)
            pairs += 1
assert pairs == 20, pairs
PY
}
by 1,3 sm,tcp,self
by 4 sm,tcp,self
if [ -z "${SANITIZER_FLAGS-}" ] && openib_on_softhca; then
    by 3,1 sm,openib,self --softhca
fi
expect_status 0 strata-run -n 5 --mca btl sm,tcp,self --mca mca_base_node 2 strata-perf coll --sizes 8k:16k --mif 0 --iters 2 --batches 2 --check
expect_status 2 strata-run -n 2 --mca mca_base_node 2,x strata-perf latency
err_has "mca_base_node takes numbers of ranks, such as 4 or 3,5, not .2,x"
finish
