#!/bin/bash
# Ports of either end go down and come up at random, in the middle of long and short messages: at times a path is left, at times none.
# No message is lost or delivered twice. SEED=N repeats a run.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_DEVICES=3 SOFTHCA_FABRIC=openib-flapping-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
RANDOM=${SEED:=$$}
changes=$(form 12 40)
say_form "$changes of 40 changes of a port, seed $SEED"
begin --mca pml_ob1_path_retry_ms 50
for _ in $(seq "$changes"); do
    way=down
    [ $((RANDOM % 2)) = 0 ] || way=up
    fault "${ranks[RANDOM % 2]}" "port soft$((RANDOM % 3)) 1 $way"
    sleep 0.$((RANDOM % 5))
done
# Ports that were down for a moment may have lost no path: then one stays down until both ranks have.
lost() { grep -qE "path [012] of 3 to rank $1 by openib failed" "$work/err"; }
if ! lost 0 || ! lost 1; then
    fault "${ranks[0]}" "port soft0 1 down"
    for rank in 0 1; do said 1 "path [012] of 3 to rank $rank by openib failed"; done
fi
for rank in "${ranks[@]}"; do
    for device in 0 1 2; do fault "$rank" "port soft$device 1 up"; done
done
enough
failed_at 2
[ "$failures" = 0 ] || echo "SEED=$SEED repeats this run, as far as the timing is the same"
finish
