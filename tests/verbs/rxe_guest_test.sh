#!/bin/bash
# The verbs suite on the kernel's Soft-RoCE, in a guest (tests/guest/run).
# guest:
. "$STRATA_SOURCE/tests/guest/lib.sh"
VERBS_DEVICE=rxe0 exec bash "$STRATA_SOURCE/tests/verbs/run_suite.sh" "$STRATA_BUILD"
