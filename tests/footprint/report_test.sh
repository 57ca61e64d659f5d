#!/bin/bash
# strata_mem_report against the kernel: what a rank grows by while messages wait that nobody expects, within 5 %.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
! grep -q fsanitize "$STRATA_BUILD/config.status" || grep -q "SANITIZER_FLAGS\"\]=\"\"" "$STRATA_BUILD/config.status" ||
    { echo "skipped under sanitizers"; exit 77; }
status=0
for load in "200000 8" "100000 100" "20000 1024" "3000 9000"; do
    # shellcheck disable=SC2086 # count and size
    out=$(strata-run --timeout "$job_limit" -n 2 --mca pml_ob1_unexpected_max 1g "$STRATA_BUILD/tests/programs/footprint" report $load) ||
        { echo "FAILED: status $?: $out"; exit 1; }
    echo "$out"
    awk '{ d = $(NF) / $(NF - 2) - 1; exit !(d > -0.05 && d < 0.05) }' <<<"$out" || { echo "FAILED: more than 5 % apart"; status=1; }
done
exit $status
