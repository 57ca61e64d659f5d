#!/bin/bash
# `strata-perf compare --cluster`: every implementation that is installed is measured between two machines, and nothing stays behind.
# No speed is asserted. A job of another library that hangs (MPICH's over UCX does, at bibw often,
# else seldom) is given up and counted, no more.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
run strata-perf compare --cluster --only latency,bw --sizes 8:16 --iters 2 --batches 2 --rounds 1 --timeout 120 --json
[ "$status" != 77 ] || skip "$(tail -n 1 "$work/err")"
check "ends well" test "$status" = 0
hung=$(grep -E '(MPICH|Open MPI) .* took too long' "$work/err")
[ -z "$hung" ] || echo "given up: $hung"
check "what is measured" python3 - "$work/out" "$hung" <<'PY'
import json, shutil, sys
names = {"mpich": "MPICH", "openmpi": "Open MPI"}
rows = json.load(open(sys.argv[1]))["rows"]
want = ["strata", "openmpi", "sockets"] + (["mpich"] if shutil.which("strata-mpi-twin.mpich") else [])
assert [(r["test"], r["bytes"], r["unit"]) for r in rows] == [
    ("latency", 8, "us"), ("latency", 16, "us"),
    ("bw", 8, "MB/s"), ("bw", 8, "s/GB"), ("bw", 16, "MB/s"), ("bw", 16, "s/GB")], rows
for r in rows:
    for w in want:
        if w in names and f"{names[w]} {r['test']}" in sys.argv[2]:
            continue
        assert r[w]["samples"] == 2, (r, w)
        assert r["unit"] == "s/GB" or r[w]["median"] > 0, (r, w)
assert rows[0]["ratio_to_sockets"] > 0 and rows[0]["target"] == "<= 1.00x", rows[0]
PY
check "its machines are gone" test -z "$(ip netns list | grep strata | grep -v "^$space" | while read -r name _; do
    kill -0 "$(sed -nE 's/^strata([0-9]+)m.*/\1/p' <<<"$name")" 2>/dev/null || echo "$name"
done)"
finish
