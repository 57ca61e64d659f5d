#!/bin/bash
# Forged cards of channels (tests/hostile/channel_card_test.c) over openib on softhca: bytes that a card makes the sender put cost the
# peer that has forged it its connection at most.
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
if ! openib_on_softhca; then
    echo "SKIP: no softhca or no btl_openib in this build (Debian: libibverbs-dev)"
    exit 77
fi
export STRATA_CONFORMANCE=openib SOFTHCA_FABRIC=cards-$$
out=$(timeout -k 5 "$job_limit" env LD_PRELOAD="$first$library" "$STRATA_BUILD/tests/hostile/channel_card_test" 2>&1)
status=$?
tail -n 30 <<<"$out"
# Nothing was tested when the device was not found.
grep -q "^run openib" <<<"$out" || { echo "FAILED: nothing ran over openib" && status=1; }
exit $status
