#!/bin/bash
# The control socket of a running process, fuzzed from a corpus and a table of seeds: it goes on working. First argument:
# seconds for each seed; seeds may follow.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
program=$STRATA_BUILD/tests/softhca/fuzz/control_fuzz
[ -x "$program" ] || skip "not built: libibverbs is missing"
export SOFTHCA_DEVICES=2 ASAN_OPTIONS="$ASAN_OPTIONS:handle_segv=1" TSAN_OPTIONS="${TSAN_OPTIONS-}:die_after_fork=0"
seconds=${1:-1}
shift "$(($# > 0))"
# shellcheck disable=SC2046 # several seeds
[ $# -gt 0 ] || set -- $(form "1 5" "1 2 3 5 8")
say_form "seeds $*, $seconds s each"
for seed; do
    single $((seconds + 60)) '^seed' "$program" "$seconds" "$STRATA_SOURCE/tests/softhca/fuzz/corpus/control.txt" "$seed"
    cat "$work/out"
done
finish
