#!/bin/bash
# Every program of libibverbs' examples, unmodified. Others: {perftest_bw,perftest_lat,ucx,openmpi}_long_test.sh.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
command -v ibv_rc_pingpong >/dev/null || skip "no ibverbs-utils"

single 10 '^ *soft0' ibv_devices
single 10 'max_qp_wr' ibv_devinfo -v
for link in ib roce; do
    export SOFTHCA_LINK=$link
    gid=()
    if [ "$link" = roce ]; then gid=(-g 1); fi
    pingpong ibv_rc_pingpong "${gid[@]}"
    pingpong ibv_rc_pingpong -e "${gid[@]}"
    pingpong ibv_uc_pingpong "${gid[@]}"
    pingpong ibv_uc_pingpong -e "${gid[@]}"
    pingpong ibv_ud_pingpong -s 1024 "${gid[@]}"
    pingpong ibv_ud_pingpong -s 1024 -e "${gid[@]}"
    pingpong ibv_srq_pingpong "${gid[@]}"
    pingpong ibv_srq_pingpong -e "${gid[@]}"
done
unset SOFTHCA_LINK
pingpong ibv_rc_pingpong -s 1000000 -r 20 -c
finish
