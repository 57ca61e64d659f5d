#!/bin/bash
# Programs that were not written for softhca, unmodified: a handful. All of them: programs_long_test.sh.
# starts first
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
command -v ibv_rc_pingpong >/dev/null || skip "no ibverbs-utils"

single 10 '^ *soft0' ibv_devices
single 10 'PORT_ACTIVE' ibv_devinfo -v
pingpong ibv_rc_pingpong -n 200
pingpong ibv_rc_pingpong -n 200 -e
pingpong ibv_uc_pingpong -n 200
pingpong ibv_ud_pingpong -n 200
pingpong ibv_srq_pingpong -n 20 -e
if command -v ib_send_lat >/dev/null; then
    perftest 1 ib_send_lat -n 200
    perftest 1 ib_write_bw -n 100 -q 4
    perftest 1 ib_read_lat -n 100
    perftest 1 ib_atomic_bw -n 100
    perftest 1 ib_send_bw -c UD -n 100 -s 1024
else
    echo "not run: perftest is not installed"
fi
finish
