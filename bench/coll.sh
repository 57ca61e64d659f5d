#!/bin/bash
# Collectives under process arrival patterns into docs/measured/coll.md and its figures. Started by `make bench-coll`.
# coll.sh [--quick|--tiny|--readers] [--minutes N] [--again] [--page FILE] [OPTION OF bench/coll.py]...
#   --quick      one round of few sizes and patterns, at most 24 minutes; --tiny: one call of each, into the build folder
#   --readers    coll_sm_readers alone, into docs/measured/coll-readers.md: how many members read one's memory at a time; 4 minutes
#   --minutes N  begins nothing after N minutes (--quick: 24); the same command goes on where it stopped
#   --again      begins anew
# shellcheck disable=SC2054 # commas within words
set -u
build=${STRATA_BUILD:?run make bench-coll} source=${STRATA_SOURCE:?run make bench-coll}
form='' minutes='' again='' page='' options=() command="make bench-coll${*:+ COLL=\"$*\"}"
while [ $# -gt 0 ]; do
    case $1 in
    --quick | --tiny | --readers) form=${1#--} ;;
    --minutes | --page)
        [ $# -gt 1 ] || { echo "coll.sh: $1 wants a value" >&2 && exit 2; }
        declare "${1#--}=$2"
        shift
        ;;
    --again) again=yes ;;
    *) options+=("$1") ;;
    esac
    shift
done
out=$build/bench/coll${form:+-$form}
case ${page:+set}$form in
set*) ;;
tiny) page=$out/coll.md ;;
readers) page=$source/docs/measured/coll-readers.md ;;
*) page=$source/docs/measured/coll.md ;;
esac
[ "$form" != quick ] || minutes=${minutes:-24}
[ -z "$again" ] || rm -rf "$out"
mkdir -p "$out"
begin=$(date +%s) status=0
[ -z "$minutes" ] || options+=(--until $((begin + minutes * 60)))
[ -z "$form" ] || [ "$form" = readers ] || options+=("--$form")
part() { # NAME OPTION...
    python3 -B "$source/bench/coll.py" --state "$out/$1.state" --out "$out/$1.md" --cells "$out/$1.cells.json" --figures "$out/figures" \
        "${@:2}" ${options[@]+"${options[@]}"} || status=1
}
softhca=''
[ ! -e "$build/softhca/.libs/libsofthca.so" ] || softhca=yes
if [ "$form" = readers ]; then
    bounds=() names=sm
    for n in 1 2 4 8 64; do
        bounds+=(--form "readers-$n:coll_arrival_ranks=0;coll_sm_ranks=1024;coll_sm_readers=$n") names+=,readers-$n
    done
    bounds+=(--form "buffers:coll_arrival_ranks=0;coll_sm_ranks=1024;coll_sm_read_min=1g")
    for op in bcast allgather alltoall; do
        part "$op" --op "$op" --ranks 4,8 --sizes 64k,256k,1m --mif 0 --late '' --rounds 2 --batches 3 --iters 5 "${bounds[@]}" \
            --systems $names,buffers
    done
    {
        printf '# How many members read the memory of one at a time\n\n'
        printf 'coll_sm copies long blocks straight from the memory of their owner. readers-N: at most N members read there at a time\n'
        printf '(coll_sm_readers); sm: the default; buffers: none does, blocks go through the areas. `%s`\n\n' "$command"
        cat "$out"/*.md
    } >"$page"
    echo "bench-coll: $page"
    exit $status
fi
peers=tuned/ob1,tuned/strata,strata/strata
forms=direct,pap_direct,shm_direct,pap_shm_direct,auto
if [ "$form" = quick ]; then
    # Measurements for the paper's figures, in the order in which a run that ends early misses least.
    if [ -n "$softhca" ]; then
        part alltoall-nodes --transport nodes --ranks 4,8,16 --sizes 1,4,256,8k,64k --late '' --systems tuned/ob1,basic,$forms
        part alltoall-nodes-late --transport nodes --ranks 16 --mif 0,128 --late 25,75 --systems tuned/ob1,$forms
    fi
    part alltoall-sm --ranks 8 --systems tuned/ob1,basic,sm,direct,pap_direct,bruck,pap_bruck,doubling,pap_doubling
    part alltoall-sm-two --ranks 2 --sizes 8,256,8k,64k,1m --mif 0 --late '' --systems tuned/ob1,basic,sm
    part alltoall-sm-bound --bind --ranks 8 --mif 0,32,128 --late '' --systems tuned/ob1,basic,sm,direct,pap_direct
    [ -z "$softhca" ] || part alltoall-softhca --transport softhca --late '' --systems tuned/ob1,basic,direct,pap_direct,pap_bruck
    bash "$source/bench/coll_apps.sh" "$out/apps.txt" ${options[@]+"${options[@]}"} || status=1
    for op in barrier bcast allreduce allgather; do
        [ -z "$softhca" ] || part "$op-nodes" --op "$op" --transport nodes --mif 0,32 --late '' --systems tuned/ob1,basic,$forms
        part "$op-sm" --op "$op" --ranks 2,8 --sizes 8,256,8k,64k,1m --mif 0,32 --late '' --systems $peers,basic,sm
    done
else
    large=(--ranks 8,16 --rounds 3) small=(--ranks 2,8)
    [ -z "$form" ] || large=(--rounds 1) small=(--rounds 1)
    part alltoall-sm
    if [ -n "$softhca" ]; then
        part alltoall-softhca --transport softhca
        part alltoall-nodes --transport nodes "${large[@]}"
    fi
    for op in barrier bcast allreduce allgather; do
        part "$op-sm" --op "$op" "${small[@]}" --mif 0,32 --late '' --systems $peers,basic,sm
        [ -z "$softhca" ] || part "$op-nodes" --op "$op" --transport nodes --mif 0,32 --late '' --systems tuned/ob1,basic,$forms
    done
    bash "$source/bench/coll_apps.sh" "$out/apps.txt" ${options[@]+"${options[@]}"} || status=1
fi
python3 -B "$source/bench/coll_page.py" "$out" "$page" "$command" || exit 1
echo "bench-coll: $page"
exit $status
