#!/bin/bash
# Methods of connecting: 64 ranks that all talk to all at once; settings that do not match are named at both ends.
. "$STRATA_SOURCE/tests/openib/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
limit=900
ranks=$(form 16 64)
say_form "$ranks of 64 ranks$(form ", ud only with repeated requests" "")" # all_to_all_long_test.sh has ud
managed=
! grep -q HAVE_RDMACM "$STRATA_BUILD/Makefile" || managed=rdmacm
for method in ud tcp $managed; do
    for kept in 0 $(form 4 8); do
        case $method,$kept in ud,* | rdmacm,0) full_form || continue ;; esac
        at_once "$ranks" $method "$kept"
    done
    [ $method != rdmacm ] || continue # its manager delivers messages in order and once
    # A repeated request is told apart from the first one and makes no connection (at_once counts them).
    for kept in $(form 2 '0 2'); do
        at_once_late 16 $method "$kept" 8000
    done
done

# ---- settings: one rank has others than the rest, and ranks that only receive learn of it as well
differently STRATA_MCA_btl_openib_connect tcp
try 1 "${openib[@]}" --mca btl_openib_connect ud -n 2 "$work/differently" "$hostile" exchange
says 'rank [01] has btl_openib_connect=(ud|tcp), rank [01] \(here\) (ud|tcp): they have none in common'
# Rank 0 sends to rank 1, which never answers, until both have named the mismatch; then it ends.
both_name() { # WHAT PARAMETERS...
    rm -f "$work/named"
    in_background timeout -k 2 600 strata-run --softhca -n 2 --mca btl openib,sm,self --mca btl_openib_connect ud "${@:2}" "$work/differently" \
        "$STRATA_BUILD/tests/programs/reconnect" 1000000 oneway "$work/named"
    for rank in 0 1; do
        until grep -q "strata\[.*:$rank\].*rank $((1 - rank)) has $1.* rank $rank (here)" "$work/err" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
    done
    touch "$work/named"
    wait $job || complain "status $? where rank 1 has another $1"
    [ "$(grep -c " has $1" "$work/err")" = 2 ] || complain "not each rank names $1 once: $(cat "$work/err")"
}
both_name btl_openib_connect=
for list in $(form tcp 'tcp,ud tcp'); do
    differently STRATA_MCA_btl_openib_connect $list
    try 0 "${openib[@]}" -n 3 "$work/differently" "$hostile" exchange
    unsaid "lists with a method in common"
done

# ---- a method that the device or the machine lacks is left out, by one rank or by all
used() { # LIST COUNT: so many ranks of the last run offer LIST
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
# Also when the first message that names them is lost.
export SOFTHCA_FAULTS='datagram 1'
both_name receive_queues --mca btl_openib_connect_fallback 0
unset SOFTHCA_FAULTS
try 2 "${openib[@]}" -n 2 --mca btl_openib_connect tcp,smoke "$hostile" exchange
says "connect: expected ud, tcp or rdmacm at 'smoke'"
if [ ! -e /dev/infiniband/rdma_cm ]; then # an error where it is requested by name, else silently left out
    export SOFTHCA_CM=no
    try 1 "${openib[@]}" -n 2 --mca btl_openib_connect rdmacm "$hostile" exchange
    says 'btl_openib_connect=rdmacm: this (machine has no RDMA connection manager|build has no librdmacm)'
    for rest in $(form ud,tcp 'ud tcp ud,tcp'); do
        try 0 "${openib[@]}" -n 3 --mca btl_openib_connect rdmacm,$rest --report-transports=json "$hostile" exchange
        unsaid_but_reports "rdmacm before $rest where there is no manager"
        used $rest 3
    done
    try 1 SOFTHCA_UD=no "${openib[@]}" -n 2 --mca btl_openib_connect rdmacm,ud "$hostile" exchange
    says 'btl_openib_connect=rdmacm: this (machine|build) .*; soft0:1: no queue pair for datagrams'
fi

finish
