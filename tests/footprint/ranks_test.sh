#!/bin/bash
# 64 ranks that start, talk to all and finish: private memory of the largest rank, at most 1,400 kB. One machine has 1,288 to 1,296 kB;
# 46 kB of it come and go with three components (docs/design/mca.md). The time is printed only.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
most=1400
# A build for coverage has its counters in the library's .bss, and their records in .data, which is empty otherwise. They grow with the
# code and are in every rank's memory.
counters() { # LIBRARY: kB
    { size -A -d "$1" && nm -S -t d "$1"; } | awk '$1 == ".data" || ($3 == "b" && $4 ~ /^__gcov/) { n += $2 } END { printf "%d", n / 1024 }'
}
grep -q 'COVERAGE_FLAGS"\]=""' "$STRATA_BUILD/config.status" || most=$((most + $(counters "$STRATA_BUILD/.libs/libstrata.so")))
! grep -q fsanitize "$STRATA_BUILD/config.status" || grep -q "SANITIZER_FLAGS\"\]=\"\"" "$STRATA_BUILD/config.status" ||
    { echo "skipped under sanitizers"; exit 77; }
out=$(strata-run --timeout "$job_limit" -n 64 "$STRATA_BUILD/tests/programs/footprint") || { echo "FAILED: status $?: $out"; exit 1; }
echo "$out"
kb=$(sed -n 's/.*private_kb \([0-9]*\).*/\1/p' <<<"$out")
[ "${kb:-0}" -gt 0 ] && [ "$kb" -le "$most" ] || { echo "FAILED: $kb kB of private memory a rank, more than $most"; exit 1; }
