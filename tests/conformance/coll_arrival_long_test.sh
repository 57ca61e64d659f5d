#!/bin/bash
# The random collectives of coll_test by every form and scheme of coll_arrival, with landing cells that are small, few or none, numbers of
# calls that wrap, and transports with and without puts; and its counters, which tell that it did the calls, and which way blocks went.
set -u
export STRATA_MCA_coll_sm_ranks=0 STRATA_MCA_coll_arrival_form=pap_direct # coll_sm would do what fits it
. "$STRATA_SOURCE/tests/support/form.sh"
full_form || export STRATA_TEST_CALLS=300
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
. "$STRATA_SOURCE/tests/support/coll.sh"
component=coll_arrival program=$STRATA_BUILD/tests/conformance/coll_test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
say_form "random calls of threads over sm, of processes over sm, tcp and softhca; full: threads over every transport"

random=$(form sm,self/random_calls /random_calls)
threads "$random" ranks=64 form=direct first_epoch=65530
threads "$random" ranks=64 form=pap_direct first_epoch=65530 cell=64
threads "$random" ranks=64 form=direct scheme=zcopy first_epoch=65530
threads "$random" ranks=64 form=pap_direct scheme=zcopy
threads "$random" ranks=64 form=pap_direct scheme=copy cell=1m memory=100k
threads "$random" ranks=64 form=direct scheme=copy memory=0
threads "$random" ranks=4
! full_form || threads "$random" ranks=64 form=bruck first_epoch=65530
threads "$random" ranks=64 form=pap_bruck cell=64
! full_form || threads "$random" ranks=64 form=pap_doubling
threads sm,self/two_threads ranks=64 scheme=zcopy
threads sm,self/memory ranks=64
threads sm,self/memory_of_many ranks=64 memory=100000

# Ranks are three processes. CONDITION is an arithmetic one on the counters; blocks are all that went.
processes() { # CASE CONDITION "OPTION-OF-STRATA-RUN..." SETTING=VALUE...
    local condition=$2 out ended name="$1 $3 ${*:4}"
    local calls=0 credits=0 blocks_to_cells=0 blocks_on_demand=0 blocks_put=0 put_fallbacks=0 blocks_from_cells=0 adverts=0 stops=0 refused=0 blocks
    three_processes "$1" "$3" "${@:4}"
    blocks=$((blocks_to_cells + blocks_on_demand + blocks_put))
    if [ $ended = 0 ] && grep -q '^1 cases passed, 0 failed' <<<"$out" && ((refused == 0 && stops == 0 && (condition))); then
        echo "processes: $name: $calls calls, $blocks blocks, $blocks_to_cells to cells, $blocks_put put"
    else
        echo "FAILED: processes: $name: status $ended, not $condition: $calls calls, $blocks_to_cells blocks to cells," \
            "$blocks_on_demand on demand, $blocks_put put, $put_fallbacks that could not be put, $blocks_from_cells from cells," \
            "$adverts adverts, $credits credits, $stops stops, $refused refused: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
    last_calls=$calls last_blocks=$blocks
}
calls3=random_calls_of_three
processes $calls3 'calls == 0 && blocks == 0' "--mca btl sm,self" ranks=0
processes $calls3 'calls > 0 && blocks_to_cells > 0 && blocks_put > 0 && put_fallbacks == 0' "--mca btl sm,self" ranks=3
all_calls=$last_calls all_blocks=$last_blocks
same="calls == $all_calls && blocks == $all_blocks"
puts="$same && blocks_put > 0 && put_fallbacks == 0"
processes $calls3 'calls > 0 && calls < '"$all_calls" "--mca btl sm,self" ranks=2
# A table: it leaves operations to the next component, and sends alltoalls in rounds.
# By default short operations of one block are left to the next component.
processes $calls3 'calls > 0 && blocks > 0 && calls < '"$all_calls" "--mca btl sm,self" form=auto
printf '%s\n' "bcast - - - - next" "allreduce - - 1000 - next" "alltoall - - 64 - pap_bruck" "alltoall - - - - direct" >"$work/table"
processes $calls3 'calls > 0 && blocks < '"$all_blocks && calls < $all_calls" "--mca btl sm,self" ranks=64 form=auto table="$work/table"
# Without puts, and with nothing else but for empty blocks, which need none.
for form in direct pap_direct; do
    processes $calls3 "$same && blocks_put == 0 && blocks_to_cells > 0 && blocks_on_demand > 0" "--mca btl sm,self" ranks=64 form=$form scheme=copy
    processes $calls3 "$puts && blocks_on_demand == 0 && blocks_from_cells == 0" "--mca btl sm,self" ranks=64 form=$form scheme=zcopy
done
processes $calls3 "$same && blocks_put == 0 && blocks_from_cells == 0 && blocks_on_demand > 0" "--mca btl sm,self" ranks=64 scheme=copy memory=0
processes $calls3 "$same && blocks_to_cells > 0" "--mca btl tcp,self" ranks=64
processes $calls3 "$puts && blocks_on_demand == 0" "--mca btl tcp,self" ranks=64 scheme=zcopy first_epoch=65530
# In rounds: fewer messages from five ranks on, alltoallv apart; doubling where their number is a power of two.
n_processes=5
processes $calls3 'calls > 0 && blocks_to_cells > 0' "--mca btl sm,self" ranks=64
all5_calls=$last_calls all5_blocks=$last_blocks
for form in $(form 'pap_bruck pap_doubling' 'bruck pap_bruck doubling pap_doubling'); do
    processes $calls3 "calls == $all5_calls && blocks < $all5_blocks && blocks_to_cells > 0" "--mca btl sm,self" ranks=64 form=$form
done
! full_form || processes $calls3 "calls == $all5_calls && blocks < $all5_blocks && blocks_put > 0 && blocks_on_demand == 0" "--mca btl sm,self" ranks=64 form=pap_bruck scheme=zcopy
! full_form || processes $calls3 "calls == $all5_calls && blocks_on_demand > 0 && blocks_from_cells == 0" "--mca btl tcp,self" ranks=64 form=pap_bruck memory=0 first_epoch=65530
n_processes=3
processes freed_early 'calls > 0' "--mca btl sm,self" ranks=64 form=pap_bruck
processes two_threads 'calls > 0 && blocks_to_cells > 0' "--mca btl sm,self" ranks=64
processes two_threads 'calls > 0 && blocks_put > 0 && blocks_on_demand == 0' "--mca btl sm,self" ranks=64 scheme=zcopy
processes two_threads 'calls > 0 && blocks_to_cells > 0' "--mca btl tcp,self" ranks=64
# Communicators that are freed while a slow rank is in the last call.
freed='calls > 0 && put_fallbacks == 0'
# Roots that are ahead of others: a block waits for its receiver's credit or advert.
processes roots_ahead "$freed && credits > 0 && blocks_from_cells > 0" "--mca btl sm,self" ranks=64
processes roots_ahead "$freed && credits > 0 && blocks_put > 0 && blocks_on_demand == 0" "--mca btl sm,self" ranks=64 scheme=zcopy first_epoch=65530
processes roots_ahead "$freed && credits > 0" "--mca btl tcp,self" ranks=64 form=direct first_epoch=65530
if full_form; then
    n_processes=5
    for scheme in copy zcopy auto; do
        processes roots_ahead "$freed && credits > 0" "--mca btl sm,self" ranks=64 scheme=$scheme cell=64
        processes roots_ahead "$freed && credits > 0" "--mca btl tcp,self" ranks=64 scheme=$scheme allreduce_once=0
    done
    n_processes=3
fi
for scheme in copy zcopy auto; do
    processes freed_early "$freed && blocks_to_cells > 0" "--mca btl sm,self" ranks=64 scheme=$scheme
done
processes freed_early "$freed && blocks_put > 0" "--mca btl sm,self" ranks=64 scheme=zcopy form=direct
processes freed_early "$freed && blocks_on_demand > 0" "--mca btl tcp,self" ranks=64
# A sanitizer's library has to come before softhca's.
if [ -z "${SANITIZER_FLAGS-}" ] && openib_on_softhca; then
    openib="--softhca --mca btl openib,self"
    processes $calls3 "$puts && blocks_to_cells > 0" "$openib" ranks=64
    processes $calls3 "$same && blocks_put == 0" "$openib" ranks=64 scheme=copy first_epoch=65530
    processes $calls3 "$puts && blocks_on_demand == 0" "$openib" ranks=64 scheme=zcopy form=direct
    processes two_threads 'calls > 0 && blocks_put > 0' "$openib" ranks=64 scheme=zcopy
    processes roots_ahead "$freed && credits > 0 && blocks_put > 0" "$openib" ranks=64 put_min=64 cell=32
    processes freed_early "$freed && blocks_put > 0" "$openib" ranks=64 scheme=zcopy
else
    echo "left out: softhca (not in this build, or a sanitizer is)"
fi
exit $status
