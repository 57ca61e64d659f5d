#!/bin/bash
# Every program of libibverbs' examples, unmodified, that polls and that waits for events. Other programs: {perftest_bw,perftest_lat,ucx,
# openmpi}_long_test.sh. The short form polls on InfiniBand and waits on RoCE.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
command -v ibv_rc_pingpong >/dev/null || skip "no ibverbs-utils"
iterations=$(form 200 1000)
say_form "$(form half all) of the pairs of link and way to wait, $iterations iterations"

single 300 '^ *soft0' ibv_devices
single 300 'max_qp_wr' ibv_devinfo -v
for link in ib roce; do
    export SOFTHCA_LINK=$link
    gid=()
    if [ "$link" = roce ]; then gid=(-g 1); fi
    for event in '' -e; do
        case $link$event in ib-e | roce) full_form || continue ;; esac
        pingpong ibv_rc_pingpong -n "$iterations" $event "${gid[@]}"
        pingpong ibv_uc_pingpong -n "$iterations" $event "${gid[@]}"
        pingpong ibv_ud_pingpong -n "$iterations" -s 1024 $event "${gid[@]}"
        pingpong ibv_srq_pingpong -n "$iterations" $event "${gid[@]}"
    done
done
unset SOFTHCA_LINK
pingpong ibv_rc_pingpong -n "$iterations" -s 1000000 -r 20 -c
finish
