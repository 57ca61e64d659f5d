#!/bin/bash
# btl_openib between two guests, each a node of its own with Soft-RoCE: message semantics, the contract of transports, ranks that are
# stopped, killed or end early, messages that nobody expects, MPI programs, connections by each method, and short and long messages
# with one packet of a hundred lost both ways. mpirun starts ranks on both.
. "$STRATA_SOURCE/tests/guest/lib.sh"
command -v mpirun.openmpi >/dev/null || { echo "SKIP: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
# The other node answers late where the machine below is busy.
export STRATA_MCA_btl_openib_timeout=18
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash

cat >"$work/both" <<'END_OF_SCRIPT'
cd /tmp
on_both() { # ranks, options of mpirun, program
    timeout -k 5 300 mpirun.openmpi --mca plm_rsh_agent on-node --host node1:2,node2:2 --map-by node -n "$@" && return
    status=$?
    return $status
}
strata=(-x STRATA_MCA_btl=openib,self)
programs=$STRATA_BUILD/tests/programs
status=0
on_both 4 "${strata[@]}" "$programs/conformance"
for ranks in 2 4; do on_both $ranks "${strata[@]}" "$programs/btl_contract" openib; done
on_both 4 "${strata[@]}" "$programs/traffic" alltoall 20000 3 2
for method in $METHODS; do
    on_both 4 "${strata[@]}" -x "STRATA_MCA_btl_openib_connect=$method" "$programs/conformance" all_to_all &&
        echo "connected by $method"
done
on_both 4 "${strata[@]}" "$programs/hostile" exchange && echo "hostile exchange"
on_both 4 "${strata[@]}" "$programs/traffic" stopped 1000 200 2 4
on_both 2 "${strata[@]}" "$programs/hostile" stop 1 1 && echo "hostile stop"
on_both 2 "${strata[@]}" "$programs/hostile" unexpected 5000 && echo "hostile unexpected"
before=$status # these end with a status of their own
on_both 2 "${strata[@]}" "$programs/hostile" exit 1 3
echo "hostile exit: status $?"
on_both 2 "${strata[@]}" "$programs/hostile" die 1 9
echo "hostile die: status $?"
status=$before
on_both 3 --enable-recovery "${strata[@]}" -x STRATA_MCA_mca_base_fence_after_failure_ms=2000 "$programs/peer_death" sending
if [ -e "$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so" ]; then
    mkdir -p /tmp/plugin
    ln -s "$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so" /tmp/plugin
    on-node node2 "mkdir -p /tmp/plugin; ln -s '$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so' /tmp/plugin"
    for name in truncate datatypes collectives threads; do
        on_both 2 --mca mca_base_component_path /tmp/plugin:SYSTEM_DEFAULT --mca pml strata --mca pml_strata_btl openib,self \
            "$STRATA_BUILD/tests/embed/programs/$name" 20 # rounds, of threads
    done
else
    for name in truncate datatypes collectives threads; do echo "$name: not built, 0 failed"; done
fi
echo "sent without loss: $(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)"
tc qdisc replace dev eth0 root netem loss 1%
on-node node2 tc qdisc replace dev eth0 root netem loss 1%
on_both 2 "${strata[@]}" "$programs/traffic" incast 3000 100 2
on_both 2 "${strata[@]}" "$programs/traffic" alltoall 4000000 2 2
tc -s qdisc show dev eth0 | grep -o 'dropped [0-9]*'
exit $status
END_OF_SCRIPT
methods=tcp
if grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile"; then methods="tcp rdmacm"; else echo "this build has no librdmacm"; fi
expect_status 0 "$guest" --nodes 2 --console -x "METHODS=$methods" -x OMPI_ALLOW_RUN_AS_ROOT -x OMPI_ALLOW_RUN_AS_ROOT_CONFIRM bash "$work/both"
out_has "^[1-9][0-9]* cases passed on 4 ranks"
out_has "^contract of openib: 14 cases on 2 ranks"; out_has "^contract of openib: 1 cases on 4 ranks"
for method in $methods; do out_has "^connected by $method$"; done
out_has "^alltoall 4000000 "
out_has "^alltoall 20000 "; out_has "^incast 3000 "
out_has "^hostile exchange$"; out_has "^stopped 1000 "; out_has "^hostile stop$"
out_has "^hostile unexpected$"; out_has "^hostile exit: status 3$"; out_has "^hostile die: status 137$"
for name in truncate datatypes collectives threads; do out_has "^$name: .* 0 failed"; done
check "a rank is killed: two are told and go on" test "$(grep -c 'goes on$' "$work/out")" = 2
check "messages went over the wire" grep -Eq "sent without loss: [0-9]{4,}" "$work/out"
check "packets were lost" grep -Eq "dropped [1-9]" "$work/out"
finish
