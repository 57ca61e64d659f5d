#!/bin/bash
# make bench-miba MIBA=...: strata-miba on softhca, or with `guest` on Soft-RoCE in the guest. README.md describes the parts.
#   proof [COST]...       each known cost of softhca is found within 5 %
#   compare [guest] [...] strata-miba agrees with perftest, qperf and cmtime; further arguments go to miba_compare.py (--rounds 3)
#   report [guest] [again] all tests: docs/measured/miba/DEVICE. Goes on where the last one ended, unless `again` is given
# Without a part: proof and compare. Wants two processors that are otherwise idle.
set -u
tool=$STRATA_BUILD/strata-miba library=$STRATA_BUILD/softhca/.libs/libsofthca.so
[ -x "$tool" ] && [ -f "$library" ] || { echo "bench-miba: strata-miba or libsofthca was not built" >&2; exit 1; }
export SOFTHCA_FABRIC=bench-miba-$$
status=0 guest=''
part=${1-both}
[ $# -gt 0 ] && shift
if [ "${1-}" = guest ]; then
    guest=yes
    shift
fi
in_guest() { "$STRATA_SOURCE/tests/guest/run" --timeout "${BENCH_TIMEOUT:-1800}" "$@"; }

# shellcheck disable=SC2120 # the arguments of this script
proof() {
    local only=() cost
    for cost in "$@"; do only+=(--only "$cost"); done
    python3 "$STRATA_SOURCE/bench/miba_proof.py" "$tool" "$library" --tolerance 0.05 --rounds 40 ${only[@]+"${only[@]}"} || status=1
}

# shellcheck disable=SC2120 # the same
compare() {
    if [ -n "$guest" ]; then
        in_guest python3 "$STRATA_SOURCE/bench/miba_compare.py" "$tool" - --device rxe0 --rounds 5 "$@" || status=1
    else
        python3 -B "$STRATA_SOURCE/bench/miba_compare.py" "$tool" "$library" --exchange "$STRATA_BUILD/bench/exchange" "$@" || status=1
    fi
}

# The raw results stay in the build folder; report and pictures are drawn here, for the guest, too.
report() {
    local name=softhca raw
    [ -z "$guest" ] || name=soft-roce
    raw=$STRATA_BUILD/bench/miba/$name
    mkdir -p "$raw" "$STRATA_SOURCE/docs/measured/miba/$name" || exit 1
    [ "${1-}" != again ] || rm -f "$raw/results.jsonl"
    if [ -n "$guest" ]; then
        in_guest --out "$raw" "$tool" all --device rxe0 --samples 5 --time 4 --timeout 30 --json --output "$raw/results.jsonl" \
            --resume --progress || status=1
    else
        LD_PRELOAD=$library "$tool" all --json --output "$raw/results.jsonl" --resume --progress || status=1
    fi
    "$tool" --draw "$raw" || exit 1
    cp "$raw/report.md" "$raw"/*.svg "$STRATA_SOURCE/docs/measured/miba/$name/" || exit 1
}

case $part in
proof | compare | report) "$part" "$@" ;;
both) proof && compare ;;
*) echo "bench-miba: MIBA is proof, compare or report" >&2; exit 2 ;;
esac
exit $status
