#!/bin/bash
# Known costs (SOFTHCA_COST): each is spent as often as softhca's README says, and only where it is set (calls.c, data.c, engine.c).
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
programs=$STRATA_BUILD/tests/softhca/costs
[ -x "$programs/calls" ] || skip "not built: libibverbs or Check is missing"
export VERBS_DEVICE=soft0
unset SOFTHCA_COST SOFTHCA_COST_CACHE SOFTHCA_MTU
single 120 '^TOTAL .* 10 passed, 0 failed, 0 skipped' "$programs/calls"
single 120 '^TOTAL .* 10 passed, 0 failed, 0 skipped' "$programs/data"
# By stores instead, over RoCE with its shorter packets, and with everything by the kernel.
VERBS_MEMORY=memfd single 120 '^TOTAL .* 10 passed, 0 failed, 0 skipped' "$programs/data"
SOFTHCA_LINK=roce single 120 '^TOTAL .* 10 passed, 0 failed, 0 skipped' "$programs/data"
SOFTHCA_SHORT=0 single 120 '^TOTAL .* 10 passed, 0 failed, 0 skipped' "$programs/data"
single 120 '^TOTAL .* 7 passed, 0 failed, 0 skipped' "$programs/engine"
# Programs that know nothing of costs work with all of them.
all='post=10ns,reg=1us,page=1ns,dereg=1us,qp=1us,qp_entry=1ns,cq=1us,cq_entry=1ns,modify=1us,destroy=1us,segment=10ns,max_sge=1ns'
all+=',packet=10ns,poll=1ns,cold=10ns,switch=10ns,event=100ns,byte=1ps,engine=1'
if command -v ibv_rc_pingpong >/dev/null; then SOFTHCA_COST=$all pingpong ibv_rc_pingpong -n 200 -e; fi
if command -v ibv_ud_pingpong >/dev/null; then SOFTHCA_COST=$all pingpong ibv_ud_pingpong -n 200; fi
finish
