#!/bin/bash
# softhca's own promises: faults on command, limits, several devices and ports, registered pages that go
# away; faults that are counted.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/faults/pages
[ -x "$program" ] || skip "not built: libibverbs or Check is missing"
export TSAN_OPTIONS="${TSAN_OPTIONS-}:die_after_fork=0"
cases() { # what VARIABLE=VALUE...
    local what=$1
    shift
    if soft 300 env VERBS_DEVICE=soft0 "$@" "$program" >"$work/out" 2>&1; then
        n_checks=$((n_checks + 1))
    else
        fail "$what" "$work/out"
    fi
    grep -a '^PASS\|^FAIL\|^TOTAL' "$work/out"
}
for name in faults limits ports pages; do
    program=$STRATA_BUILD/tests/softhca/faults/$name
    cases "$name, InfiniBand" SOFTHCA_DEVICES=2 SOFTHCA_PORTS=2
    cases "$name, RoCE" SOFTHCA_DEVICES=2 SOFTHCA_PORTS=2 SOFTHCA_LINK=roce
    cases "$name, memory that peers map" VERBS_MEMORY=memfd SOFTHCA_DEVICES=2 SOFTHCA_PORTS=2
done
program=$STRATA_BUILD/tests/softhca/faults/limits
cases "small limits" VERBS_CASE=limits_hold SOFTHCA_MAX_QP=5 SOFTHCA_MAX_MR=6 SOFTHCA_MAX_CQ=4 SOFTHCA_MAX_SRQ=2 \
    SOFTHCA_MAX_PD=3 SOFTHCA_MEMLOCK=1048576
cases "queues of one length" VERBS_CASE=resize_as_set SOFTHCA_RESIZE=no
cases "no datagrams, three partition keys" VERBS_CASE=device_as_set SOFTHCA_UD=no SOFTHCA_PKEYS=3
program=$STRATA_BUILD/tests/softhca/faults/counted_faults
cases "faults that are counted"
finish
