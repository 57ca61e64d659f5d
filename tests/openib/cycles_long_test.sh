#!/bin/bash
# A thousand connections that come and go, by each method that softhca allows, also with every ninth message lost.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=240
for method in ud tcp; do
    for fault in clear 'drop 9'; do
        try 0 SOFTHCA_FAULTS="$fault" "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_connect $method \
            --mca btl_openib_max_connected_peers 1 --mca btl_openib_timeout 8 "$STRATA_BUILD/tests/programs/cycles" 500
        unsaid_but_reports "$method, $fault"
        at_least torn_down 1998 "$method, $fault"
        [ "$(grep -c "\"connect\":\"$method\"" "$work/err")" = 3 ] || complain "$method was not what was used"
    done
done
# Each connection waits anew for another to go, and none is made above the limit because of waits long ago; two, should
# the machine be so busy that none goes for a second.
try 0 "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_max_connected_peers 1 "$STRATA_BUILD/tests/programs/cycles" 15000
unsaid_but_reports "15000 cycles"
[ "$(count forced)" -le 2 ] || complain "$(count forced) connections were made above the limit"
finish
