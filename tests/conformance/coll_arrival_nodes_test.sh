#!/bin/bash
# The random collectives of coll_test by coll_arrival's forms that know nodes (Shm_Direct, PAP_Shm_Direct), ranks of one machine as nodes of
# different sizes: every scheme, short and long blocks in one call, numbers of calls that wrap, areas that are small or cannot be had.
# Counters tell which way blocks went.
set -u
export STRATA_MCA_coll_sm_ranks=0 STRATA_MCA_coll_arrival_ranks=64 # coll_sm would do what fits it
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/coll.sh"
component=coll_arrival n_processes=5 # but for cases of three
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
say_form "random calls of five processes over sm and tcp, one over softhca; full: 100,000 of each, every form and scheme"

processes() { # CASE CONDITION "OPTION-OF-STRATA-RUN..." SETTING=VALUE...
    local condition=$2 out ended name="$1 $3 ${*:4}"
    local calls=0 shm_calls=0 node_blocks=0 blocks_to_cells=0 blocks_on_demand=0 blocks_put=0 blocks_from_cells=0 adverts=0 stops=0 refused=0
    local refused_areas=0
    [ "$1" = $calls5 ] || n_processes=3
    three_processes "$1" "$3" "${@:4}"
    n_processes=5
    if [ $ended = 0 ] && grep -q '^1 cases passed, 0 failed' <<<"$out" && ((refused == 0 && stops == 0 && (condition))); then
        echo "processes: $name: $calls calls, $shm_calls by leaders, $node_blocks blocks of nodes of $((blocks_to_cells + blocks_on_demand + blocks_put))"
    else
        echo "FAILED: processes: $name: status $ended, not $condition: $calls calls, $shm_calls by leaders, $node_blocks blocks of nodes," \
            "$blocks_to_cells blocks to cells, $blocks_on_demand on demand, $blocks_put put, $blocks_from_cells from cells," \
            "$adverts adverts, $stops stops, $refused refused, $refused_areas areas: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
}
calls5=random_calls_of_three # any number of ranks up to nine
nodes() { echo "--mca btl $2,self --mca mca_base_node $1"; }
by_leaders='shm_calls > 0 && node_blocks > 0 && refused_areas == 0'
# Leaders of nodes of 3, 1 and 1: their blocks alone travel where no block is longer than the limit. Communicators of one rank do without.
processes $calls5 "$by_leaders && calls > shm_calls && node_blocks == blocks_to_cells + blocks_on_demand + blocks_put" \
    "$(nodes 3,1 sm,tcp)" form=pap_shm_direct shm_block=1m memory=100m first_epoch=65530
processes $calls5 "$by_leaders && shm_calls < calls && node_blocks < blocks_to_cells + blocks_on_demand" \
    "$(nodes 2 sm,tcp)" form=shm_direct shm_block=64 first_epoch=65530
processes freed_early "$by_leaders" "$(nodes 2 sm,tcp)" form=pap_shm_direct
processes two_threads "$by_leaders" "$(nodes 2 sm,tcp)" form=shm_direct
# One node: nothing travels. Nodes of one rank, and no memory for an area: blocks go straight.
processes $calls5 'shm_calls > 0 && node_blocks == 0 && refused_areas == 0' "--mca btl sm,self" form=pap_shm_direct
processes $calls5 'calls > 0 && shm_calls == 0 && blocks_to_cells > 0' "$(nodes 1 tcp)" form=shm_direct
processes $calls5 'calls > 0 && shm_calls == 0 && blocks_on_demand > 0' "$(nodes 2 sm,tcp)" form=shm_direct memory=0
if full_form; then
    for form in shm_direct pap_shm_direct; do
        for scheme in copy zcopy auto; do
            processes $calls5 "$by_leaders" "$(nodes 1,3 sm,tcp)" form=$form scheme=$scheme
            processes $calls5 "$by_leaders && blocks_put == 0" "$(nodes 2 sm,tcp)" form=$form scheme=$scheme shm_block=256 cell=64
            processes freed_early "$by_leaders" "$(nodes 2 sm,tcp)" form=$form scheme=$scheme
        done
    done
fi
# A sanitizer's library has to come before softhca's.
if [ -z "${SANITIZER_FLAGS-}" ] && [ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1; then
    openib="--softhca $(nodes 3,1 sm,openib)"
    processes $calls5 "$by_leaders && blocks_put > 0 && blocks_to_cells > 0" "$openib" form=pap_shm_direct put_min=512 cell=256
    processes $calls5 "$by_leaders && blocks_put > 0 && blocks_on_demand == 0" "$openib" form=shm_direct scheme=zcopy
    ! full_form || processes $calls5 "$by_leaders" "$openib" form=pap_shm_direct
else
    echo "left out: softhca (not in this build, or a sanitizer is)"
fi
exit $status
