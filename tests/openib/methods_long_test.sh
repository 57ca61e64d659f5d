#!/bin/bash
# Methods of connecting: 64 ranks that all talk to all at once; settings that do not fit are named at both ends.
. "$STRATA_SOURCE/tests/openib/lib.sh"
limit=240
for method in ud tcp; do
    for kept in 0 8; do
        try 0 "${openib[@]}" -n 64 --mca btl_openib_connect $method --mca btl_openib_max_connected_peers $kept \
            "$STRATA_BUILD/tests/programs/conformance" all_to_all
    done
done

# ---- settings: one rank has others than the rest, and ranks that only receive learn of it as well
differently() { # VARIABLE VALUE
    printf '#!/bin/bash\n[ "$PMIX_RANK" != 1 ] || export STRATA_MCA_btl_openib_%s=%s\nexec "$@"\n' "$1" "$2" >"$work/differently"
    chmod +x "$work/differently"
}
differently connect tcp
try 1 "${openib[@]}" -n 2 "$work/differently" "$hostile" exchange
says 'rank [01] has btl_openib_connect=(ud|tcp), rank [01] \(here\) (ud|tcp): they have none in common'
differently connect tcp,ud
try 0 "${openib[@]}" -n 3 "$work/differently" "$hostile" exchange
unsaid "lists with a method in common"
differently mtu 512
try 0 "${openib[@]}" -n 3 "$work/differently" "$hostile" exchange
unsaid "the smaller MTU counts"
differently receive_queues S,4k,4096,16,32:S,16k,1024,8,16
try 0 strata-run --softhca -n 2 --mca btl openib,sm,self "$work/differently" "$STRATA_BUILD/tests/programs/cycles" 3
for rank in 0 1; do
    says "strata\[.*:$rank\].*rank $((1 - rank)) has receive_queues .* rank $rank \(here\)"
done
try 2 "${openib[@]}" -n 2 --mca btl_openib_connect tcp,smoke "$hostile" exchange
says "connect: expected ud, tcp or rdmacm at 'smoke'"
if [ ! -e /dev/infiniband/rdma_cm ]; then # by name an error, else it is not thought of
    try 1 "${openib[@]}" -n 2 --mca btl_openib_connect rdmacm "$hostile" exchange
    says 'btl_openib_connect=rdmacm: this (machine has no RDMA connection manager|build has no librdmacm)'
fi

finish
