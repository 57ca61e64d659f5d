#!/usr/bin/env bash
# What registration costs btl_openib on softhca: the same buffers to and fro, with registrations kept (rcache_tree), made each
# time (rcache_none), and each time with RDMA for all that is long. In turns; the least of the medians. ROUNDS: 5.
set -euo pipefail
: "${STRATA_BUILD:?run make bench-registered}"
if [ ! -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ]; then
    echo "bench-registered: no libibverbs in this build; on Debian: apt-get install libibverbs-dev" >&2
    exit 77
fi
export SOFTHCA_FABRIC=bench-$$
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
turn() { # name arguments of strata-run...
    strata-run --softhca -n 2 --mca btl openib,self "${@:2}" strata-perf --json --sizes 64k:4m --batches 5 --iters 30 latency |
        sed "s/^{/{\"who\": \"$1\", /" >>"$rows"
}
for ((i = 0; i < ${ROUNDS:-5}; i++)); do
    turn kept --mca rcache tree
    turn each --mca rcache none
    turn rdma --mca rcache none --mca btl_openib_rdma_min 32k
done
python3 - "$rows" <<'END'
import json, sys
best, text, at, decoder = {}, open(sys.argv[1]).read(), 0, json.JSONDecoder()
while text[at:].strip():
    at += len(text[at:]) - len(text[at:].lstrip())
    job, at = decoder.raw_decode(text, at)
    for row in job["rows"]:
        key = (row["bytes"], job["who"])
        best[key] = min(best.get(key, 1e9), row["median"])
print("us one way       kept  each time  each time, RDMA")
for size in sorted({key[0] for key in best}):
    print(f"{size // 1024:6} KiB {best[size, 'kept']:11.1f} {best[size, 'each']:10.1f} {best[size, 'rdma']:16.1f}")
END
