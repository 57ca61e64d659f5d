#!/bin/bash
# shared_fuzz_test.sh for longer.
exec bash "$STRATA_SOURCE/tests/softhca/fuzz/shared_fuzz_test.sh" 45
