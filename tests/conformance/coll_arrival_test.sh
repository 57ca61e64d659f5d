#!/bin/bash
# The random collectives of coll_test by every form and scheme of coll_arrival, with landing cells that are small, few or none, numbers of
# calls that wrap, and transports with and without puts.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
program=$STRATA_BUILD/tests/conformance/coll_test
status=0
say_form "random calls over sm; full: every transport"
one() { # SETTING=VALUE...
    local name=$* out
    out=$(for s in "$@"; do export "STRATA_MCA_coll_arrival_$s"; done
        STRATA_CONFORMANCE=$(form sm,self/ random_calls) "$program" 2>&1)
    if [ $? = 0 ] && grep -q '^100%: Checks: [1-9]' <<<"$out"; then
        echo "$name: as the naive version"
    else
        echo "FAILED: $name: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
}
one ranks=64 form=direct first_epoch=65530
one ranks=64 form=pap_direct first_epoch=65530 cell=64
one ranks=64 form=direct scheme=zcopy first_epoch=65530
one ranks=64 form=pap_direct scheme=zcopy
one ranks=64 form=pap_direct scheme=copy cell=1m memory=100k
one ranks=64 form=direct scheme=copy memory=0
one ranks=4
exit $status
