#!/bin/bash
# The owner of a completion queue gets no processor while it replaces it, or never ends to.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/faults/slow_owner
[ -x "$program" ] || skip "not built: libibverbs is missing"
for how in slow busy; do single 120 '^one completion' "$program" "$how"; done
finish
