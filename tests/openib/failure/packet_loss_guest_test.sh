#!/bin/bash
# Messages up to 4 MiB both ways while one packet of a hundred is lost each way, on Soft-RoCE: they arrive, whole. By get and by put,
# with shorter ones by sends.
# guest: --two-devices --netem "loss 1%"
. "$STRATA_SOURCE/tests/guest/lib.sh"

own_devices 'rxe$PMIX_RANK'
for way in $(form get "get put"); do
    before=$(dropped) began=$SECONDS
    expect_status 0 "${openib[@]}" -n 2 --mca pml_ob1_rndv "$way" "$work/own" "$STRATA_BUILD/tests/programs/hostile" exchange
    lost=$(($(dropped) - before))
    check "$way: $lost packets were lost" test "$lost" -ge 100
    echo "$way: $lost packets lost, $((SECONDS - began)) s"
done
finish
