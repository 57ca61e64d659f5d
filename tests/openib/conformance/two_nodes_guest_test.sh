#!/bin/bash
# btl_openib between two guests, each a node of its own with Soft-RoCE: message semantics, the contract of transports, ranks that are
# stopped, killed or end early, messages that nobody expects, collectives of nodes, MPI programs, connections by each method, and short
# and long messages with one packet of a hundred lost both ways. mpirun starts ranks on both.
# guest: --nodes 2
command -v mpirun.openmpi >/dev/null || { echo "SKIP: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
. "$STRATA_SOURCE/tests/guest/lib.sh"
# The other node answers late where the machine below is busy.
export STRATA_MCA_btl_openib_timeout=18
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash
methods=tcp
if grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile"; then methods="tcp rdmacm"; else echo "this build has no librdmacm"; fi
programs=$STRATA_BUILD/tests/programs conformance=$STRATA_BUILD/strata-conformance
cd "$work" || exit 1
on-node node2 mkdir -p "$work"

on_both() { # STATUS RANKS [OPTION OF mpirun]... PROGRAM ARG...
    expect_status "$1" mpirun.openmpi --mca plm_rsh_agent on-node --host node1:2,node2:2 --map-by node -n "${@:2}"
    cat "$work/out"
}
common=(-x STRATA_TEST_FORM -x STRATA_IN_GUEST -x STRATA_MCA_btl_openib_timeout)
strata=("${common[@]}" -x "STRATA_MCA_btl=openib,self")

on_both 0 4 "${strata[@]}" "$conformance" --only "$(form messages/basic messages)"
out_has "^[1-9][0-9]* cases passed, 0 failed.* 4 processes$"
on_both 0 2 "${strata[@]}" "$conformance" --only transport
out_has "^21 cases passed, 0 failed.* 2 processes$"
on_both 137 2 "${strata[@]}" "$programs/hostile" die 1 9
on_both 0 3 --enable-recovery "${strata[@]}" -x STRATA_MCA_mca_base_fence_after_failure_ms=2000 "$programs/peer_death" sending
check "a rank is killed: two are told and go on" test "$(grep -c 'goes on$' "$work/out")" = 2
# Collectives of nodes of four ranks, half of them in each guest: shared memory within a node, the wire between.
for coll_form in pap_shm_direct $(form "" "pap_direct auto"); do
    expect_status 0 mpirun.openmpi --mca plm_rsh_agent on-node --host "node1:$(form 4 8),node2:$(form 4 8)" --map-by slot --bind-to none \
        -n "$(form 8 16)" "${common[@]}" -x STRATA_MCA_btl=sm,openib,self -x STRATA_MCA_mca_base_node=4 \
        -x STRATA_MCA_coll_arrival_form=$coll_form "$conformance" --only coll/random_calls_of_three
    cat "$work/out"
    out_has "^1 cases passed, 0 failed.* $(form 8 16) processes$"
done
if full_form; then
    on_both 0 4 "${strata[@]}" "$conformance" --only transport
    out_has "^1 cases passed, 0 failed.* 4 processes$"
    on_both 0 4 "${strata[@]}" "$programs/traffic" alltoall 20000 3 2
    out_has "^alltoall 20000 "
    for method in $methods; do
        on_both 0 4 "${strata[@]}" -x "STRATA_MCA_btl_openib_connect=$method" "$conformance" --only messages/traffic/all_to_all
    done
    on_both 0 2 "${strata[@]}" "$programs/hostile" stop 1 1
    on_both 0 4 "${strata[@]}" "$programs/hostile" exchange
    on_both 0 4 "${strata[@]}" "$programs/traffic" stopped 1000 200 2 4
    out_has "^stopped 1000 "
    on_both 0 2 "${strata[@]}" "$programs/hostile" unexpected 5000
    on_both 3 2 "${strata[@]}" "$programs/hostile" exit 1 3
fi
if [ -e "$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so" ]; then
    for node in node1 node2; do
        on-node $node "mkdir -p '$work/plugin'; ln -s '$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so' '$work/plugin'"
    done
    for name in $(form "" "truncate datatypes collectives threads"); do
        on_both 0 2 --mca mca_base_component_path "$work/plugin:SYSTEM_DEFAULT" --mca pml strata --mca pml_strata_btl openib,self \
            "$STRATA_BUILD/tests/embed/programs/$name" 20 # rounds, of threads
        out_has " 0 failed"
    done
fi
sent=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)
check "messages went over the wire: $sent packets" test "$sent" -ge 1000
both_lose
on_both 0 2 "${strata[@]}" "$programs/traffic" incast 3000 "$(form 30 100)" 2
out_has "^incast 3000 "
on_both 0 2 "${strata[@]}" "$programs/traffic" alltoall "$(form 1000000 4000000)" "$(form 1 2)" 2
out_has "^alltoall $(form 1000000 4000000) "
check "packets were lost: $(dropped)" test "$(dropped)" -ge 1
finish
