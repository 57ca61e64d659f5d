#!/bin/bash
# A process whose watcher of registered memory seems to be at work for ever does not hold up those that use its memory each time.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/faults/stuck_watcher
[ -x "$program" ] || skip "not built: libibverbs is missing"
for whose in own peer; do single 120 '^100 writes' "$program" "$whose"; done
finish
