#!/bin/bash
# btl_openib on softhca: the contract of transports, message semantics and clients, over each kind of queue and link. The short
# form has message semantics over the first kind only.
# starts first
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
if ! openib_on_softhca; then
    echo "SKIP: no softhca or no btl_openib in this build (Debian: libibverbs-dev)"
    exit 77
fi
# Only what is over openib.
export STRATA_CONFORMANCE=openib SOFTHCA_FABRIC=openib-$$
status=0
programs="btl_test pml_test clients_test notify_test notify_shared_test landing_ring_test landing_failure_test channel_test channel_set_test channel_abort_test"
run() { # what VARIABLE=VALUE...
    local what=$1 out
    shift
    for program in $programs; do
        if out=$(timeout -k 5 "$job_limit" env "$@" LD_PRELOAD="$first$library" \
            "$STRATA_BUILD/tests/conformance/$program" 2>&1); then
            echo "$what, $program: $(tail -n 1 <<<"$out")"
        else
            echo "FAILED: $what, $program: $(grep -m 1 -aE ': rank -?[0-9]+: |ERROR: |runtime error' <<<"$out"): $(tail -n 30 <<<"$out")"
            status=1
        fi
        # Nothing was tested when the device was not found.
        grep -q "^run openib" <<<"$out" || { echo "FAILED: $what, $program ran nothing over openib" && status=1; }
    done
}
if full_form; then programs="$programs channel_bytes_long_test channel_many_test"; fi
run "InfiniBand, shared receive queues"
programs="btl_test pml_test"
full_form || programs=btl_test
# Packets so small that most heads would cost one, and nothing inline, so that the shortest messages have such heads, too.
run "RoCE, packets of 256 bytes" SOFTHCA_LINK=roce STRATA_MCA_btl_openib_mtu=256 STRATA_MCA_btl_openib_max_inline=1
run "RoCE, receive queues per peer" SOFTHCA_LINK=roce SOFTHCA_ARM=new \
    STRATA_MCA_btl_openib_receive_queues=P,8k,64,1,16:P,32k,32,1,8
exit $status
