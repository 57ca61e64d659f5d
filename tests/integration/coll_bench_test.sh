#!/bin/bash
# bench/coll.py: a small run, that goes on where it was broken off; its tables and figures; wrong usage. No speed is asserted.
. "$STRATA_SOURCE/tests/integration/lib.sh"
# shellcheck disable=SC2054 # commas within words
coll=(python3 -B "$STRATA_SOURCE/bench/coll.py" --quick --ranks 2 --sizes 8,1k --mif 0,20 --late 50 --iters 1 --batches 1
    --systems basic,pap_direct --state "$work/state" --figures "$work/figures")
expect_status 0 "${coll[@]}"
out_has '^\*\*2 ranks, random arrival, MIF 20: from the last arrival to the last exit\*\*$'
out_has '^\*\*2 ranks, 50 % late, MIF 128: mean time in the call\*\*$'
out_has '^| 1 KiB | [0-9.]* | [0-9.]* |  | [0-9]*: [0-9]* to [0-9]*'
test "$(grep -v '^#' "$work/figures/alltoall-sm-2-late50-mif128-in-call.dat" | wc -l)" = 2 || fail "no figure of two sizes"
# One result is missing: only that job runs again.
python3 - "$work/state" <<'PY'
import json, sys
state = json.load(open(sys.argv[1]))
gone = [key for key in state if key.endswith(" 8 basic")][0]
del state[gone]
for key in state:
    if not key.startswith("base"):
        for row in state[key]:
            row["after_last"]["samples"] = [123456.0]
json.dump(state, open(sys.argv[1], "w"))
PY
expect_status 0 "${coll[@]}"
out_has '^| 1 KiB | 123456.0 | 123456.0 |'
test "$(grep -c '^| 8 | 123456.0 | 123456.0 |' "$work/out")" = 2 || fail "not one job ran again: $(cat "$work/out")"
expect_status 2 "${coll[@]}" --systems nothing
err_has 'there is no system nothing here; there are:.* basic, sm, direct, pap_direct'
finish
