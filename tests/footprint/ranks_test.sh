#!/bin/bash
# 64 ranks that start, talk to all and finish: at most 2.0 MB of private memory each. The time is printed only.
set -u
! grep -q fsanitize "$STRATA_BUILD/config.status" || grep -q "SANITIZER_FLAGS\"\]=\"\"" "$STRATA_BUILD/config.status" ||
    { echo "skipped under sanitizers"; exit 77; }
out=$(strata-run -n 64 "$STRATA_BUILD/tests/programs/footprint") || { echo "FAILED: status $?: $out"; exit 1; }
echo "$out"
kb=$(sed -n 's/.*private_kb \([0-9]*\).*/\1/p' <<<"$out")
[ "$kb" -le 2048 ] || { echo "FAILED: $kb kB of private memory a rank, more than 2048"; exit 1; }
