#!/bin/bash
# btl_tcp between two guests with 50 ms of delay each way, two ranks on each: message semantics by tcp and sm, then the contract of
# transports and long messages for a pair.
# guest: --nodes 2
# short form: not run
command -v mpirun.openmpi >/dev/null || { echo "SKIP: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
. "$STRATA_SOURCE/tests/guest/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash
conformance=$STRATA_BUILD/strata-conformance
cd "$work" || exit 1
on-node node2 mkdir -p "$work"
on_both() { # RANKS [OPTION OF mpirun]... PROGRAM ARG...
    expect_status 0 mpirun.openmpi --mca plm_rsh_agent on-node --host node1:2,node2:2 --map-by node -n "$@"
    cat "$work/out"
}
delayed() { tc -s qdisc show dev eth0 | sed -nE 's/.* ([0-9]+) pkt .*/\1/p' | head -1; }
set_netem "delay 50ms"
on-node node2 tc qdisc replace dev eth0 root netem delay 50ms
check "packets wait for 50 ms" grep -q 'delay 50' <<<"$(tc qdisc show dev eth0)"
before=$(delayed)
on_both 4 -x STRATA_MCA_btl=tcp,sm,self "$conformance" --only "$(form messages/basic/ messages/)"
out_has "^[1-9][0-9]* cases passed, 0 failed.* 4 processes$"
on_both 2 -x STRATA_MCA_btl=tcp,self "$conformance" --only "$(form transport/rdma transport/)"
out_has "^[1-9][0-9]* cases passed, 0 failed.* 2 processes$"
on_both 2 -x STRATA_MCA_btl=tcp,self "$STRATA_BUILD/tests/programs/traffic" alltoall 4000000 "$(form 1 4)" 2
out_has "^alltoall 4000000 "
check "packets were delayed: $(($(delayed) - before))" test $(($(delayed) - before)) -ge 200
finish
