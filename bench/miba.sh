#!/bin/bash
# make bench-miba: strata-miba finds the known costs of softhca within 5 % (MIBA=proof, with costs to look for: MIBA='proof reg byte'),
# and agrees with perftest and qperf on softhca (MIBA=compare). Both by default. Wants two processors that are otherwise idle.
set -u
tool=$STRATA_BUILD/strata-miba library=$STRATA_BUILD/softhca/.libs/libsofthca.so
[ -x "$tool" ] && [ -f "$library" ] || { echo "bench-miba: strata-miba or libsofthca was not built" >&2; exit 1; }
export SOFTHCA_FABRIC=bench-miba-$$
status=0
part=${1-both}
[ $# -gt 0 ] && shift
case $part in
proof | both)
    only=()
    for cost in "$@"; do only+=(--only "$cost"); done
    python3 "$STRATA_SOURCE/bench/miba_proof.py" "$tool" "$library" --tolerance 0.05 --rounds 40 ${only[@]+"${only[@]}"} || status=1 ;;
compare) ;;
*) echo "bench-miba: MIBA is proof or compare" >&2; exit 2 ;;
esac
case $part in
compare | both) python3 "$STRATA_SOURCE/bench/miba_compare.py" "$tool" "$library" || status=1 ;;
esac
exit $status
