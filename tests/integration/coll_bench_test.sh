#!/bin/bash
# bench/coll.py: a small run, that goes on where it was broken off; its tables and figures; wrong usage. No speed is asserted.
. "$STRATA_SOURCE/tests/integration/lib.sh"
# shellcheck disable=SC2054 # commas within words
coll=(python3 -B "$STRATA_SOURCE/bench/coll.py" --quick --ranks 2 --sizes 8,1k --mif 0,20 --late 50 --iters 1 --batches 1
    --systems basic,pap_direct --state "$work/state" --figures "$work/figures")
expect_status 0 "${coll[@]}"
out_has '^\*\*2 ranks, random arrival, MIF 20: from the last arrival to the last exit\*\*$'
out_has '^\*\*2 ranks, 50 % late, MIF 128: mean time in the call\*\*$'
out_has '^| 1 KiB | [0-9.]*\** | [0-9.]*\** |.* | [0-9]*: [0-9]* to [0-9]*'
out_has 'best form, to the floor (at most 1.3)'
test "$(grep -v '^#' "$work/figures/alltoall-sm-2-late50-mif128-in-call.dat" | wc -l)" = 2 || fail "no figure of two sizes"
# One result is missing: only that job runs again.
python3 - "$work/state" <<'PY'
import json, sys
state = json.load(open(sys.argv[1]))
gone = [key for key in state if " 8 basic " in key and not key.startswith("base")][0]
del state[gone]
for key in state:
    if not key.startswith("base"):
        for row in state[key]:
            row["after_last"]["samples"] = [123456.0]
json.dump(state, open(sys.argv[1], "w"))
PY
expect_status 0 "${coll[@]}"
out_has '^| 1 KiB | 123456.0\** | 123456.0\** |'
test "$(grep -c '^| 8 | 123456.0\** | 123456.0\** |' "$work/out")" = 2 || fail "not one job ran again: $(cat "$work/out")"
# Other batches or settings are other results: nothing of them is in the state yet.
grep -q '123456' "$work/state" || fail "the state has lost what was measured"
for change in "--batches 2" "--mca coll_sm_readers=3"; do
    # shellcheck disable=SC2086 # two words
    expect_status 0 "${coll[@]}" --sizes 8 --mif 0 --late '' $change
    ! grep -q 123456 "$work/out" || fail "$change: results of other jobs: $(cat "$work/out")"
done
# So is other code: the keys have a digest of the library and the plugins, of a build folder that is a copy but for one byte.
python3 - "$STRATA_SOURCE/bench" "$work" <<'PY' || fail "keys do not tell builds apart"
import os, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from coll import build_digest
digests = []
for content in (b"a", b"b", b"a"):
    folder = os.path.join(sys.argv[2], "build", ".libs")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "libstrata.so"), "wb") as f:
        f.write(content)
    digests.append(build_digest(os.path.join(sys.argv[2], "build")))
assert digests[0] == digests[2] != digests[1], digests
PY
# Bound ranks are another place: nothing of the others' results is theirs.
expect_status 0 "${coll[@]}" --sizes 8 --mif 0 --late '' --bind
! grep -q 123456 "$work/out" || fail "--bind: results of ranks that are not bound: $(cat "$work/out")"
out_has '^## alltoall over sm, bound$'
test -s "$work/figures/alltoall-sm-bound-2-late0-mif0-in-call.dat" || fail "no figure of bound ranks"
# A barrier has no sizes: boxes, which gnuplot can draw.
expect_status 0 "${coll[@]}" --op barrier --mif 0 --late ''
figure=$work/figures/barrier-sm-2-late0-mif0-in-call
test "$(wc -l <"$figure.dat")" = 2 || fail "not a box for each of two systems: $(cat "$figure.dat")"
! grep -q 'range is invalid' "$work/err" || fail "gnuplot: $(cat "$work/err")"
! grep -q logscale "$figure.gp" || fail "a logarithm of no size"
if command -v gnuplot >/dev/null; then test -s "$figure.svg" || fail "no figure of a barrier"; fi
# Medians for the page, which marks a run that its limit of time has ended; an aware form is judged where all arrive together.
mkdir "$work/cells"
expect_status 0 "${coll[@]}" --sizes 8 --cells "$work/cells/a.cells.json" --out "$work/cells/a.md"
grep -q 'aware, to best that waits' "$work/cells/a.md" || fail "no aware form is judged: $(cat "$work/cells/a.md")"
! grep -q 'Not whole' "$work/cells/a.md" || fail "a whole run is not said to be one"
expect_status 0 python3 -B "$STRATA_SOURCE/bench/coll_page.py" "$work/cells" "$work/page.md" "a command"
grep -q '^| alltoall | sm | 2 | [0-2] of 2 | ' "$work/page.md" || fail "no target on the page: $(cat "$work/page.md")"
# Beside Open MPI on one machine, and beside what the paper says: ratios of medians that are given.
python3 - "$work/cells/b.cells.json" <<'PY'
import json, sys
def cell(system, ranks, size, us, mif=0):
    return {"ranks": ranks, "late": 0, "mif": mif, "bytes": size, "system": system, "resolved": True, "in_call": us, "after_last": us,
            "skew": 1.0, "last_call": us}
cells = [cell("tuned/ob1", 8, 8, 10.0), cell("sm", 8, 8, 12.0), cell("tuned/ob1", 8, 65536, 100.0), cell("sm", 8, 65536, 40.0),
         cell("tuned/ob1", 8, 4, 70.0, 32), cell("pap_shm_direct", 8, 4, 20.0, 32)]
json.dump({"about": {"op": "alltoall", "transport": "sm", "machine": "m", "date": "d", "whole": True}, "cells": cells}, open(sys.argv[1], "w"))
PY
expect_status 0 python3 -B "$STRATA_SOURCE/bench/coll_page.py" "$work/cells" "$work/page.md" "a command"
grep -qx '| alltoall | sm | 8 | 1 of 2 | 0.80 | 1.20 | 0.40 | 0.40 |' "$work/page.md" || fail "one machine: $(cat "$work/page.md")"
grep -qx '| sm | 8 | 4 | pap_shm_direct | 32 | 3.5 | 3.50 |' "$work/page.md" || fail "beside the paper: $(cat "$work/page.md")"
# Open MPI's collectives by the twin, in turn with Strata's forms.
if command -v mpirun.openmpi >/dev/null && [ -e "$STRATA_BUILD/strata-mpi-twin.openmpi" ]; then
    expect_status 0 "${coll[@]}" --sizes 8 --mif 20 --late '' --systems tuned/ob1,pap_direct
    out_has '^| 8 | [0-9.]*\** | [0-9.]*\** | [0-9.]* |'
    for op in alltoall allgather allreduce bcast barrier; do
        expect_status 0 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash mpirun.openmpi --oversubscribe -n 3 \
            "$STRATA_BUILD/strata-mpi-twin.openmpi" coll --json --op $op --sizes 1k:2k --mif 0,20 --iters 2 --batches 1 --check
        python3 -c 'import json, sys
rows = json.loads(open(sys.argv[1]).read())["rows"]
assert len(rows) == (2 if sys.argv[2] == "barrier" else 4) and all(row["after_last"]["median"] > 0 for row in rows), rows' "$work/out" $op ||
            fail "the twin, $op: $(cat "$work/out")"
    done
fi
expect_status 0 "${coll[@]}" --sizes 16 --until 1
out_has '^\*\*Not whole\*\*'
expect_status 2 "${coll[@]}" --systems nothing
err_has 'there is no system nothing here; there are:.* basic, sm, direct, pap_direct'
finish
