#!/bin/bash
# Both ends lose their only port at once under load and get it back, with the same address or another one: where unacknowledged messages
# are kept (pml_ob1_path_keep) no message is lost or delivered twice. A peer that dies meanwhile is an error, not a wait.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
snapshot
export SOFTHCA_FABRIC=openib-single-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
RANDOM=${SEED:=$$}
links=$(form roce "ib roce")
say_form "links $links, seed $SEED"
keep=(--mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 50)
ports() { # DIRECTION: of both ranks, as nearly at once as can be
    for rank in "${ranks[@]}"; do fault "$rank" "port soft0 1 $1"; done
}
another() { # RANK...: their ports get another address
    for rank; do fault "${ranks[$rank]}" "address soft0 1 $((address += 1))"; done
}
address=0
for link in $links; do
    export SOFTHCA_LINK=$link
    begin "${keep[@]}"
    for moved in '' '0 1' $((RANDOM % 2)) '0 1'; do
        ports down
        sleep 0.$((RANDOM % 9))
        # shellcheck disable=SC2086 # a word for each
        another $moved
        ports up
        sleep 0.$((RANDOM % 9))
    done
    enough
    failed_at 2
done
begin "${keep[@]}"
ports down
sleep 0.$((RANDOM % 9))
kill -9 "${ranks[0]}"
ports_up=$(softhca-stat --fault "${ranks[1]}" 'port soft0 1 up' 2>&1) || echo "the other one has ended: $ports_up"
end nonzero
says 'was killed by signal 9'
[ "$failures" = 0 ] || echo "SEED=$SEED repeats this run, as far as the timing is the same"
finish
