#!/bin/bash
# The only link between two machines is down for five seconds while messages go both ways, and comes back: all arrive, each once.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
two_links
down_and_up() { # WHAT TIMEOUT-MS
    begin_cluster -np 4 -x STRATA_MCA_btl=tcp,sm,self -x STRATA_MCA_btl_tcp_if_include=10.77.0.0/24 -x STRATA_MCA_btl_tcp_timeout_ms="$2" \
        "$STRATA_BUILD/tests/programs/traffic" alltoall 30000 100 50
    link_goes_and_comes "$1" 20000000
    check "$1: all has arrived" grep -q '^alltoall 30000 ' "$work/out"
}
down_and_up "the connection stays" 60000
down_and_up "the connection is made again" 8000
finish
