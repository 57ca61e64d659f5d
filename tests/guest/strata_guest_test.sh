#!/bin/bash
# Strata as it is built here runs in the guest.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"

check "a device that only the guest has" test -e /sys/class/infiniband/rxe0
expect_status 0 strata-run -n 2 "$STRATA_BUILD/docs/examples/hello"
check "two ranks say hello" test "$(grep -c '^hello from rank [01] of 2' "$work/out")" = 2
expect_status 0 strata-run -n 2 --mca btl self,sm strata-perf --json --sizes 8:8 --batches 3 --iters 200 latency
check "a latency above zero" python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert rows and all(row["median"] > 0 for row in rows), rows' "$work/out"
finish
