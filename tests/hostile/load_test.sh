#!/bin/bash
# More ranks than cores with one of them stopped for a while; very many unexpected messages.
. "$STRATA_SOURCE/tests/hostile/lib.sh"

cores=$(nproc)
ranks=$((4 * cores > 24 ? 24 : 4 * cores))
start=$(date +%s)
run 0 strata-run -n $ranks "$hostile" stop 1 3
echo "$ranks ranks on $cores cores, one stopped for 3 s: $(($(date +%s) - start)) s"
run 0 strata-run -n 2 "$hostile" stop 0 1
run 0 strata-run -n 2 "$hostile" unexpected 100000
finish
