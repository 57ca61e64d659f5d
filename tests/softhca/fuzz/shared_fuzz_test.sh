#!/bin/bash
# A healthy process and one that is broken, or whose shared state is: the corpus, then seeds as time allows (arguments:
# seconds, first seed; 1 and 1, in the full form 2 and 1). The healthy one has to survive and to end. A seed that fails is printed
# with how to run it again.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
program=$STRATA_BUILD/tests/softhca/fuzz/shared_fuzz
[ -x "$program" ] || skip "not built: libibverbs is missing"
export ASAN_OPTIONS="$ASAN_OPTIONS:handle_segv=1" TSAN_OPTIONS="${TSAN_OPTIONS-}:die_after_fork=0"
# Regions that a broken process calls gone are spoken of on stderr, as they should.
seconds=${1:-$(form 1 2)}
say_form "the corpus, then seeds from ${2:-1} on for $seconds s"
soft $((seconds + 3600)) "$program" "$seconds" "$STRATA_SOURCE/tests/softhca/fuzz/corpus/shared.txt" "${2:-1}" >"$work/out" 2>&1
status=$?
grep -av 'registered memory was used' "$work/out" | head -n 100
[ $status = 0 ] || fail "shared_fuzz: status $status"
n_checks=1
finish
