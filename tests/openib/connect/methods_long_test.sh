#!/bin/bash
# Methods of connecting: 64 ranks that all talk to all at once; settings that do not fit are named at both ends.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=300
managed=
! grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile" || managed=rdmacm
for method in ud tcp $managed; do
    for kept in 0 8; do
        at_once 64 $method $kept
    done
    [ $method != rdmacm ] || continue # its manager keeps words in order, and says none twice
    # What is said again comes twice, and late: it is told from the first time, and no connection is made by it (at_once counts
    # them). Nobody else is there to be refused.
    for kept in 0 2; do
        at_once 16 $method $kept SOFTHCA_FAULTS='delay 8000' -- --mca btl_openib_connect_retry_ms 1
        at_least repeats 300 "$method, $kept kept, requests said again"
        at_least duplicates 100 "$method, $kept kept, requests said again"
    done
    at_least refused 50 "$method: late words of connections that are gone"
    echo "$method: $(count repeats) said again, $(count duplicates) heard twice, $(count refused) refused"
done

# ---- settings: one rank has others than the rest, and ranks that only receive learn of it as well
differently STRATA_MCA_btl_openib_connect tcp
try 1 "${openib[@]}" --mca btl_openib_connect ud -n 2 "$work/differently" "$hostile" exchange
says 'rank [01] has btl_openib_connect=(ud|tcp), rank [01] \(here\) (ud|tcp): they have none in common'
try 0 strata-run --softhca -n 2 --mca btl openib,sm,self --mca btl_openib_connect ud "$work/differently" "$STRATA_BUILD/tests/programs/reconnect" 3 oneway
for rank in 0 1; do
    says "strata\[.*:$rank\].*rank $((1 - rank)) has btl_openib_connect=.* rank $rank \(here\)"
done
for list in tcp,ud tcp; do
    differently STRATA_MCA_btl_openib_connect $list
    try 0 "${openib[@]}" -n 3 "$work/differently" "$hostile" exchange
    unsaid "lists with a method in common"
done

# ---- what a device or a machine does not have is passed over, by one rank or by all
used() { # LIST COUNT: so many ranks of the last run offer it
    [ "$(grep -c "\"connect\":\"$1\"" "$work/err")" = "$2" ] || complain "not $2 ranks offer $1"
}
try 0 "${openib[@]}" -n 3 --report-transports=json "$hostile" exchange
used ud,tcp 3
try 0 SOFTHCA_UD=no "${openib[@]}" -n 3 --report-transports=json "$hostile" exchange
unsaid_but_reports 'a device without datagrams'
used tcp 3
differently SOFTHCA_UD no
try 0 "${openib[@]}" -n 3 --report-transports=json "$work/differently" "$hostile" exchange
unsaid_but_reports 'a rank without datagrams'
used tcp 1
used ud,tcp 2
try 1 SOFTHCA_UD=no "${openib[@]}" -n 2 --mca btl_openib_connect ud "$hostile" exchange
says 'soft0:1: no queue pair for datagrams, with its buffers, can be made: Operation not supported'
differently STRATA_MCA_btl_openib_mtu 512
try 0 "${openib[@]}" -n 3 "$work/differently" "$hostile" exchange
unsaid "the smaller MTU counts"
differently STRATA_MCA_btl_openib_receive_queues S,4k,4096,16,32:S,16k,1024,8,16
try 0 strata-run --softhca -n 2 --mca btl openib,sm,self "$work/differently" "$STRATA_BUILD/tests/programs/reconnect" 3
for rank in 0 1; do
    says "strata\[.*:$rank\].*rank $((1 - rank)) has receive_queues .* rank $rank \(here\)"
done
# Also when the first word of it is lost.
try 0 SOFTHCA_FAULTS='datagram 1' strata-run --softhca -n 2 --mca btl openib,sm,self --mca btl_openib_connect ud \
    --mca btl_openib_connect_fallback 0 "$work/differently" "$STRATA_BUILD/tests/programs/reconnect" 3 oneway
for rank in 0 1; do
    says "strata\[.*:$rank\].*rank $((1 - rank)) has receive_queues .* rank $rank \(here\)"
done
[ "$(grep -c 'has receive_queues' "$work/err")" = 2 ] || complain "what does not fit is said more than once: $(cat "$work/err")"
try 2 "${openib[@]}" -n 2 --mca btl_openib_connect tcp,smoke "$hostile" exchange
says "connect: expected ud, tcp or rdmacm at 'smoke'"
if [ ! -e /dev/infiniband/rdma_cm ]; then # by name an error, else it is not thought of
    export SOFTHCA_CM=no
    try 1 "${openib[@]}" -n 2 --mca btl_openib_connect rdmacm "$hostile" exchange
    says 'btl_openib_connect=rdmacm: this (machine has no RDMA connection manager|build has no librdmacm)'
    for rest in ud tcp ud,tcp; do
        try 0 "${openib[@]}" -n 3 --mca btl_openib_connect rdmacm,$rest --report-transports=json "$hostile" exchange
        unsaid_but_reports "rdmacm before $rest where there is no manager"
        used $rest 3
    done
    try 1 SOFTHCA_UD=no "${openib[@]}" -n 2 --mca btl_openib_connect rdmacm,ud "$hostile" exchange
    says 'btl_openib_connect=rdmacm: this (machine|build) .*; soft0:1: no queue pair for datagrams'
fi

finish
