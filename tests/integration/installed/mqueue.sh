#!/bin/bash
# docs/examples/btl_mqueue, the transport that was written from the installed pages alone: built against the installed tree, and the
# conformance suite over it. Run by ../plugin_test.sh.
set -eu
. "$STRATA_SOURCE/tests/integration/installed/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"

cd "$work/examples"
make -s -C btl_mqueue install CFLAGS="-O2 -g -Werror ${SANITIZER_FLAGS-}" || fail "btl_mqueue does not build"
exports_only "$HOME/.strata/components/strata_btl_mqueue.so" st_component_btl_mqueue
if ! why=$(strata-info --explain --mca btl self,mqueue 2>&1); then
    echo "SKIP: no message queues here: $why"
    exit 77
fi
if full_form; then
    conform 2 mqueue
    conform 4 mqueue
else
    conform 2 mqueue transport messages/basic messages/data messages/order
fi
conform threads mqueue transport
strata-run --timeout "$job_limit" -n 2 --mca btl self,mqueue --mca btl_mqueue_max_send 1k \
    strata-perf latency --check --sizes 1:64k --iters 5 --batches 2 || fail "strata-perf over mqueue with short messages"
