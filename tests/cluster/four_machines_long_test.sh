#!/bin/bash
# 64 ranks on four machines (short form: 16) start, send to all, and hold at most 16 kB for each peer that is connected by TCP.
. "$STRATA_SOURCE/tests/support/form.sh"
n_machines=4 ranks_per_machine=$(form 4 16)
. "$STRATA_SOURCE/tests/cluster/lib.sh"
say_form "$((n_machines * ranks_per_machine)) ranks"
two_links
ranks=$((n_machines * ranks_per_machine))
strata=(-x "STRATA_MCA_btl=tcp,sm,self" -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24)
cluster -np $ranks "${strata[@]}" "$STRATA_BUILD/tests/programs/traffic" alltoall 2000 2 2
check "all to all: ends well" test "$status" = 0
check "all to all: all has arrived" grep -q '^alltoall 2000 ' "$work/out"

cluster -np $ranks "${strata[@]}" strata-perf memory --json
check "memory: ends well" test "$status" = 0
check "at most 16 kB for each peer by TCP" python3 - "$work/out" $((ranks - ranks_per_machine)) <<'PY'
import json, sys
rows = {r["kind"]: r["max"] for r in json.load(open(sys.argv[1]))["rows"]}
peers = int(sys.argv[2])
tcp = {k: v for k, v in rows.items() if k.startswith("btl_tcp ") or k == "worker lanes"}
assert "worker lanes" in tcp and len(tcp) > 1, rows
print(f"{sum(tcp.values()) / peers:.1f} kB for each of {peers} peers: {tcp}")
assert sum(tcp.values()) / peers <= 16, tcp # a module's own buffers included
PY
finish
