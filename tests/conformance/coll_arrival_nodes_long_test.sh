#!/bin/bash
# The random collectives of coll_test by coll_arrival's forms that know nodes (Shm_Direct, PAP_Shm_Direct), ranks of one machine as nodes of
# different sizes: every scheme, short and long blocks in one call, numbers of calls that wrap, areas that are small or cannot be had.
# Counters tell which way blocks went.
set -u
export STRATA_MCA_coll_sm_ranks=0 STRATA_MCA_coll_arrival_ranks=64 # coll_sm would do what fits it
. "$STRATA_SOURCE/tests/support/form.sh"
full_form || export STRATA_TEST_CALLS=300
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
. "$STRATA_SOURCE/tests/support/coll.sh"
component=coll_arrival program=$STRATA_BUILD/tests/conformance/coll_test n_processes=5 # but for cases of three
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
say_form "random calls of five processes over sm and tcp, one over softhca, once of sixteen; full: 100,000 of each, every form and scheme"

processes() { # CASE CONDITION "OPTION-OF-STRATA-RUN..." SETTING=VALUE...
    local condition=$2 out ended name="$1 $3 ${*:4}"
    local calls=0 shm_calls=0 node_blocks=0 blocks_to_cells=0 blocks_on_demand=0 blocks_put=0 blocks_from_cells=0 adverts=0 stops=0 refused=0
    local refused_areas=0 skewed_calls=0 credits=0 blocks_relayed=0 pieces_relayed=0
    [ "$1" = $calls5 ] || n_processes=${others:-3}
    # A block that comes as a whole before its leader looks is passed on as a whole: other calls are tried then.
    for STRATA_TEST_SEED in $seeds; do
        export STRATA_TEST_SEED
        three_processes "$1" "$3" "${@:4}"
        [[ $ended = 0 && $condition = *pieces_relayed* && $pieces_relayed = 0 ]] || break
    done
    unset STRATA_TEST_SEED
    n_processes=5
    if [ "$ended" = 0 ] && grep -q '^1 cases passed, 0 failed' <<<"$out" && ((refused == 0 && stops == 0 && (condition))); then
        echo "processes: $name: $calls calls, $shm_calls by leaders, $node_blocks blocks of nodes and $blocks_relayed relayed of" \
            "$((blocks_to_cells + blocks_on_demand + blocks_put))"
    else
        echo "FAILED: processes: $name: status $ended, not $condition: $calls calls, $shm_calls by leaders, $node_blocks blocks of nodes," \
            "$blocks_to_cells blocks to cells, $blocks_on_demand on demand, $blocks_put put, $blocks_from_cells from cells," \
            "$blocks_relayed relayed, $pieces_relayed pieces relayed, $adverts adverts, $credits credits, $stops stops, $refused refused, $refused_areas areas: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
}
seeds="${STRATA_TEST_SEED:-28} 29 30 31 32"
calls5=random_calls_of_three # any number of ranks up to sixteen
nodes() { echo "--mca btl $2,self --mca mca_base_node $1"; }
by_leaders='shm_calls > 0 && node_blocks > 0 && refused_areas == 0'
# Leaders of nodes of 3, 1 and 1. Communicators of one rank do without; the block of a bcast is passed on by leaders.
processes $calls5 "$by_leaders && calls > shm_calls && blocks_relayed > 0" \
    "$(nodes 3,1 sm,tcp)" form=pap_shm_direct shm_block=1m memory=100m first_epoch=65530
processes $calls5 "$by_leaders && shm_calls < calls && node_blocks < blocks_to_cells + blocks_on_demand" \
    "$(nodes 2 sm,tcp)" form=shm_direct shm_block=64 first_epoch=65530
# Blocks of bcasts in pieces: leaders pass them on while others come.
processes $calls5 "$by_leaders && blocks_put > 0 && pieces_relayed > 0" "$(nodes 3,1 sm,tcp)" form=pap_shm_direct scheme=zcopy piece=256
# Sixteen ranks as four nodes of four.
n_processes=16
processes $calls5 "$by_leaders && blocks_relayed > 0" "$(nodes 4 sm,tcp)" form=pap_shm_direct
# Areas and landing cells of many communicators have one limit.
threads sm,self/memory_of_many form=pap_shm_direct memory=100000
# Alltoalls alone: blocks of nodes alone travel where no block is longer than the limit.
processes freed_early "$by_leaders && node_blocks == blocks_to_cells + blocks_on_demand + blocks_put" "$(nodes 2 sm,tcp)" form=pap_shm_direct shm_block=1m memory=100m
processes freed_early "$by_leaders" "$(nodes 2 sm,tcp)" form=pap_shm_direct
# Roots and leaders that are ahead: in the area of a node a member waits until all others have begun the call before.
relays="$by_leaders && credits > 0 && blocks_relayed > 0"
processes roots_ahead "$relays" "$(nodes 1,2 sm,tcp)" form=pap_shm_direct first_epoch=65530
others=5
echo "alltoall - - 1 - pap_shm_direct" >"$work/table" # the rest by size and skew, none to the next component
processes roots_ahead "$relays" "$(nodes 2 sm,tcp)" form=auto skew_max=16384 table="$work/table"
! full_form || processes roots_ahead "$relays && blocks_put > 0" "$(nodes 3 sm,tcp)" form=shm_direct scheme=zcopy first_epoch=65530
! full_form || processes roots_ahead "$relays" "$(nodes 3,1 sm,tcp)" form=pap_shm_direct cell=64 allreduce_once=0
others=3
# By size and skew: all members go on in the same form, or they would wait for each other. Of a communicator's calls the first two know no skew.
processes $calls5 "$by_leaders && shm_calls < calls && skewed_calls == 0 && blocks_relayed == 0" "$(nodes 2 sm,tcp)" form=auto skew_max=16384
processes $calls5 "$by_leaders && skewed_calls > 0" "$(nodes 3,1 sm,tcp)" form=auto skew_max=0 shm_auto=4k first_epoch=65530
# Members that come up to 100 ms apart go straight two calls later.
rm -f "$work/report"
skewed_calls=0 shm_calls=0
timeout -k 5 "$job_limit" strata-run -n 4 --mca btl sm,tcp,self --mca mca_base_node 2 --mca coll_arrival_form auto --mca coll_arrival_skew_max 16000 \
    --report-counters=json --report-file "$work/report" strata-perf coll --sizes 8 --mif 2000 --base 50 --iters 4 --batches 1 --check >"$work/out" 2>&1 || status=1
while read -r row; do printf -v "${row%%=*}" %s "${row#*=}"; done < <(sums "$work/report")
if ((skewed_calls >= 4 && shm_calls > 0)); then
    echo "late members: $skewed_calls calls went straight, $shm_calls by leaders"
else
    echo "FAILED: late members: $skewed_calls calls went straight, $shm_calls by leaders: $(tail -n 4 "$work/out")"
    status=1
fi
# Rounds tell a member the times of some others alone: the choice after them is the same at all members, or they would wait for each other.
printf '%s\n' "alltoall - - - 63 pap_shm_direct" "alltoall - - - - pap_bruck" >"$work/table"
processes $calls5 "$by_leaders" "$(nodes 2 sm,tcp)" form=auto table="$work/table"
if full_form; then
    processes two_threads "$by_leaders" "$(nodes 2 sm,tcp)" form=shm_direct
    # One node: nothing travels. Nodes of one rank, and no memory for an area: blocks go straight.
    processes $calls5 'shm_calls > 0 && node_blocks == 0 && refused_areas == 0' "--mca btl sm,self" form=pap_shm_direct
    processes $calls5 'calls > 0 && shm_calls == 0 && blocks_to_cells > 0' "$(nodes 1 tcp)" form=shm_direct
    processes $calls5 'calls > 0 && shm_calls == 0 && blocks_on_demand > 0' "$(nodes 2 sm,tcp)" form=shm_direct memory=0
    for form in shm_direct pap_shm_direct auto; do
        for scheme in copy zcopy auto; do
            processes $calls5 "$by_leaders" "$(nodes 1,3 sm,tcp)" form=$form scheme=$scheme
            processes $calls5 "$by_leaders" "$(nodes 2 sm,tcp)" form=$form scheme=$scheme shm_block=256 cell=64
            processes freed_early "$by_leaders" "$(nodes 2 sm,tcp)" form=$form scheme=$scheme
        done
    done
fi
# A sanitizer's library has to come before softhca's.
if [ -z "${SANITIZER_FLAGS-}" ] && openib_on_softhca; then
    openib="--softhca $(nodes 3,1 sm,openib)"
    processes $calls5 "$by_leaders && blocks_put > 0 && blocks_to_cells > 0" "$openib" form=pap_shm_direct put_min=512 cell=256
    processes $calls5 "$by_leaders && blocks_put > 0 && blocks_on_demand == 0 && pieces_relayed > 0" "$openib" form=shm_direct scheme=zcopy piece=256
    ! full_form || processes $calls5 "$by_leaders" "$openib" form=pap_shm_direct
    others=5
    processes roots_ahead "$relays && blocks_put > 0" "$openib" form=pap_shm_direct put_min=512 cell=256
    others=3
else
    echo "left out: softhca (not in this build, or a sanitizer is)"
fi
exit $status
