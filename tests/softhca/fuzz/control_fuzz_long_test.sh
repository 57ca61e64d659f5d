#!/bin/bash
# control_fuzz_test.sh for longer.
exec bash "$STRATA_SOURCE/tests/softhca/fuzz/control_fuzz_test.sh" 8
