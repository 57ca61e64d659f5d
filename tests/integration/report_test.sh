#!/usr/bin/env bash
# What a job says about itself: strata-run's reports, and those of its ranks.
. "$STRATA_SOURCE/tests/integration/lib.sh"
traffic=$STRATA_BUILD/tests/programs/traffic

# --- how each peer was reached, and what went both ways -------------------------------------------------------------
# Rank 0 sends to nobody but by the barriers, which are empty; ranks 1 and 2 send it 10 messages of 100 bytes three times.
expect_status 0 strata-run -n 3 --report-transports "$traffic" incast 100 10 2
err_has ':0\]: peer 1 on .*: sent [0-9]* messages*, 0 bytes; received [0-9]* messages, 3000 bytes by sm$'
err_has ':2\]: peer 0 on .*: sent [0-9]* messages, 3000 bytes; received [0-9]* messages*, 0 bytes by sm$'
err_has ':0\]: all 2 peers by sm: sent [0-9]* messages, 0 bytes; received [0-9]* messages, 6000 bytes$'
err_has ':1\]: peer 0 on .*: path 1 of 1 by sm, '
# What one rank has sent the other has received; a rank that only receives has a row for each of its peers.
expect_status 0 strata-run -n 4 --report-transports=json "$traffic" incast 70000 3 2
check "the ranks' reports agree" python3 - "$work/err" <<'PY'
import json, sys
ranks = {r["rank"]: r for r in map(json.loads, (l for l in open(sys.argv[1]) if l.startswith("{")))}
assert sorted(ranks) == [0, 1, 2, 3], ranks.keys()
cell = {(r, p["rank"]): p for r in ranks for p in ranks[r]["peers"]}
for (a, b), p in cell.items():
    q = cell[(b, a)]
    assert p["messages_sent"] == q["messages_received"] and p["bytes_sent"] == q["bytes_received"], (a, b, p, q)
    assert p["by"] == "sm"
assert [cell[(0, r)]["bytes_received"] for r in (1, 2, 3)] == [630000] * 3
assert ranks[0]["traffic"]["sm"]["bytes_received"] == 3 * 630000 and ranks[0]["traffic"]["sm"]["peers"] == 3
PY

finish
