#!/bin/bash
# Short RDMA writes into memory that is mapped by their writer (short_writes.c).
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/device/short_writes
[ -x "$program" ] || skip "not built: libibverbs or Check is missing"
export VERBS_DEVICE=soft0
single 120 '^TOTAL .* 14 passed, 0 failed, 0 skipped' "$program"
SOFTHCA_SHORT=64 VERBS_CASE=no_longer_than single 60 '^TOTAL .* 1 passed, 0 failed, 0 skipped' "$program"
finish
