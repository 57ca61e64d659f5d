#!/bin/bash
# A process that is stopped or killed in the middle of adding a completion holds up others for a moment only, and loses nothing.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/faults/stopped_writer
[ -x "$program" ] || skip "not built: libibverbs is missing"
for how in killed stopped; do single 60 '^[1-9][0-9]* caught' "$program" "$how"; done
single 120 'messages in order' "$program" flooded
finish
