#!/bin/bash
# The files of a component can be read one by one: no header includes another in a cycle, few files use each other in one, no header
# is long, be it theirs, of the SDK or of tests, components do not share six equal lines, static functions have a prefix, and
# transports do not name their clients.
command -v nm >/dev/null && command -v python3 >/dev/null || { echo "skipped: nm or python3 is missing (Debian: binutils, python3)"; exit 77; }
python3 "$STRATA_SOURCE/config/ci/repeats.py" "$STRATA_SOURCE" || status=1
python3 -B "$STRATA_SOURCE/config/ci/names.py" "$STRATA_SOURCE" || status=1
python3 "$STRATA_SOURCE/config/ci/cycles.py" "$STRATA_SOURCE" "$STRATA_BUILD" || status=1
exit ${status:-0}
