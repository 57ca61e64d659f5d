#!/bin/bash
# The verbs suite on the kernel's Soft-RoCE, in a guest (tests/guest/run).
set -u
here=$(cd "$(dirname "$0")" && pwd)
exec bash "$here/../guest/run" env VERBS_DEVICE=rxe0 bash "$here/run_suite.sh" "$STRATA_BUILD"
