#!/bin/bash
# Short messages, which lie in softhca's own memory until they are polled (short_messages.c).
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/device/short_messages
[ -x "$program" ] || skip "not built: libibverbs or Check is missing"
export VERBS_DEVICE=soft0
single 120 '^TOTAL .* 7 passed, 0 failed, 0 skipped' "$program"
SOFTHCA_SHORT=64 VERBS_CASE=no_longer_than single 60 '^TOTAL .* 1 passed, 0 failed, 0 skipped' "$program"
finish
