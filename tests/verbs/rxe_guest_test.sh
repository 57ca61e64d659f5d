#!/bin/bash
# The verbs suite on the kernel's Soft-RoCE, in a guest (tests/guest/run).
# guest:
. "$STRATA_SOURCE/tests/guest/lib.sh"
# Much of each program is waiting.
export VERBS_DEVICE=rxe0 VERBS_AT_ONCE=4 VERBS_REPETITIONS
VERBS_REPETITIONS=$(form 10 100)
say_form "$VERBS_REPETITIONS per cent of the repetitions that look for races"
exec bash "$STRATA_SOURCE/tests/verbs/run_suite.sh" "$STRATA_BUILD"
