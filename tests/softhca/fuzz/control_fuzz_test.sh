#!/bin/bash
# The control socket of a running process, fuzzed from a corpus and a table of seeds: it goes on working. First argument:
# seconds for each seed.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
program=$STRATA_BUILD/tests/softhca/fuzz/control_fuzz
[ -x "$program" ] || skip "not built: libibverbs is missing"
export SOFTHCA_DEVICES=2 ASAN_OPTIONS="$ASAN_OPTIONS:handle_segv=1" TSAN_OPTIONS="${TSAN_OPTIONS-}:die_after_fork=0"
for seed in 1 2 3 5 8; do
    single $((${1:-1} + 60)) '^seed' "$program" "${1:-1}" "$STRATA_SOURCE/tests/softhca/fuzz/corpus/control.txt" "$seed"
    cat "$work/out"
done
finish
