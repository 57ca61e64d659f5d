#!/bin/bash
# Memory that is mapped and registered where another thread's munmap has not come back is not taken for what went away.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/faults/remap_race
[ -x "$program" ] || skip "not built: libibverbs is missing"
soft 30 "$program" >"$work/out" 2>&1
status=$?
outcome remap_race $status
