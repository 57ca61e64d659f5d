#!/bin/bash
# shared_fuzz_test.sh for longer. SEED=N: seeds from N on. The short form takes seeds that the quick test does not reach.
. "$STRATA_SOURCE/tests/support/form.sh"
seconds=$(form 8 45)
first=${SEED-$(form 10001 1)}
say_form "seeds from $first on for $seconds s"
exec bash "$STRATA_SOURCE/tests/softhca/fuzz/shared_fuzz_test.sh" "$seconds" "$first"
