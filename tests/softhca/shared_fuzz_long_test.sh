#!/bin/bash
# shared_fuzz_test.sh for two minutes.
exec bash "$STRATA_SOURCE/tests/softhca/shared_fuzz_test.sh" 120
