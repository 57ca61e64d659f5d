#!/bin/bash
# control_fuzz_test.sh for longer. SEED=N: this seed only. The short form takes seeds that the quick test does not have.
. "$STRATA_SOURCE/tests/support/form.sh"
seeds=${SEED-$(form '13 21' '1 2 3 5 8')}
seconds=$(form 3 8)
say_form "seeds $seeds for $seconds s each"
# shellcheck disable=SC2086 # seeds
exec bash "$STRATA_SOURCE/tests/softhca/fuzz/control_fuzz_test.sh" "$seconds" $seeds
