#!/bin/bash
# A million unexpected messages.
. "$STRATA_SOURCE/tests/hostile/lib.sh"
run 0 strata-run -n 2 "$hostile" unexpected 1000000
finish
