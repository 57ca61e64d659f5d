#!/bin/bash
# btl_openib with eager RDMA for every peer, on softhca: the contract of transports, message semantics and clients, by each way of
# finding messages. The short form has all of them by seals, and the contract by the others.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
if ! openib_on_softhca; then
    echo "SKIP: no softhca or no btl_openib in this build (Debian: libibverbs-dev)"
    exit 77
fi
# Only what is over openib.
export STRATA_CONFORMANCE=openib SOFTHCA_FABRIC=eager-$$ STRATA_MCA_btl_openib_eager_rdma=on STRATA_MCA_btl_openib_eager_rdma_after=1
status=0
run() { # PROGRAM DETECTION [VARIABLE=VALUE...]
    local out what="$2, $1${3:+, ${*:3}}"
    if out=$(timeout -k 5 "$job_limit" env "STRATA_MCA_btl_openib_eager_rdma_detect=$2" "${@:3}" \
        LD_PRELOAD="$first$library" "$STRATA_BUILD/tests/conformance/$1" 2>&1); then
        echo "$what: $(tail -n 1 <<<"$out")"
    else
        echo "FAILED: $what: $(tail -n 30 <<<"$out")"
        status=1
    fi
    grep -q "^run openib" <<<"$out" || { echo "FAILED: $what ran nothing over openib" && status=1; }
}
programs="btl_test pml_test clients_test notify_test notify_shared_test landing_ring_test landing_failure_test channel_test channel_set_test"
for program in $programs; do
    run $program seal
done
full_form || programs=btl_test
for program in $programs; do
    run $program flag
    run $program imm
done
# Two slots, of one message's header and some data each; one place, which goes from peer to peer.
run btl_test seal STRATA_MCA_btl_openib_eager_rdma_slots=2 STRATA_MCA_btl_openib_eager_rdma_slot=128
run btl_test flag STRATA_MCA_btl_openib_eager_rdma_slots=5 STRATA_MCA_btl_openib_eager_rdma_slot=128 STRATA_MCA_btl_openib_eager_rdma_span=64
run btl_test seal STRATA_MCA_btl_openib_eager_rdma_peers=1
# Orders of polling; all rings but one quiet as soon as nothing comes.
run btl_test seal STRATA_MCA_btl_openib_eager_rdma_order=circular STRATA_MCA_btl_openib_eager_rdma_lively=1
run btl_test flag STRATA_MCA_btl_openib_eager_rdma_order=sequential STRATA_MCA_btl_openib_eager_rdma_lively=1
# Nothing inline, packets so small that heads go as immediate data, writes by the kernel.
run btl_test seal SOFTHCA_LINK=roce STRATA_MCA_btl_openib_mtu=256 STRATA_MCA_btl_openib_max_inline=1 SOFTHCA_SHORT=0
run btl_test imm SOFTHCA_LINK=roce STRATA_MCA_btl_openib_receive_queues=P,8k,64,1,16:P,32k,32,1,8
exit $status
