#!/bin/bash
# control_fuzz_test.sh for two minutes.
exec bash "$STRATA_SOURCE/tests/softhca/control_fuzz_test.sh" 24
