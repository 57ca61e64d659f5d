#!/bin/bash
# Ports of either end go down and come up at random, in the middle of long and short messages, for some seconds: at times a path
# is left, at times none. Nothing is lost, nothing comes twice.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_DEVICES=3 SOFTHCA_FABRIC=openib-flapping-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
RANDOM=${SEED:=$$}
begin --mca pml_ob1_path_retry_ms 50
for _ in $(seq 40); do
    way=down
    [ $((RANDOM % 2)) = 0 ] || way=up
    fault "${ranks[RANDOM % 2]}" "port soft$((RANDOM % 3)) 1 $way"
    sleep 0.$((RANDOM % 5))
done
for rank in "${ranks[@]}"; do
    for device in 0 1 2; do fault "$rank" "port soft$device 1 up"; done
done
enough
failed_at 2
[ "$failures" = 0 ] || echo "to be had again, if the timing is the same, with SEED=$SEED"
finish
