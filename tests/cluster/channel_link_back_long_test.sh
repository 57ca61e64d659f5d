#!/bin/bash
# The only link between two machines is down for five seconds while messages go by a channel, and comes back. A connection that stays
# carries the channel on; one that is made again has broken it at both ends, by an error, and a fresh channel carries the rest.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
two_links
down_and_up() { # WHAT TIMEOUT-MS
    begin_cluster -np 2 -x STRATA_MCA_btl=tcp,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 \
        -x STRATA_MCA_btl_tcp_timeout_ms="$2" "$STRATA_BUILD/tests/programs/channel_resume" 20000 200
    link_goes_and_comes "$1" 2000000
}
down_and_up "the connection stays" 60000
check "one channel carried all" grep -q '^all 20000 by 1 channels' "$work/out"
down_and_up "the connection is made again" 8000
check "all has arrived, by more than one channel" grep -qE '^all 20000 by ([2-9]|[0-9]{2,}) channels' "$work/out"
finish
