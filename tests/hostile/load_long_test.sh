#!/bin/bash
# A million unexpected messages.
. "$STRATA_SOURCE/tests/hostile/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
count=$(form 300000 1000000)
export HOSTILE_TIMEOUT=800
say_form "$count of 1000000 messages"
run 0 strata-run -n 2 "$hostile" unexpected "$count"
finish
