#!/bin/bash
# Our own MPI programs over the plugin, at several numbers of ranks, and once over Open MPI's own pml, which validates the
# programs themselves.
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
limit=${EMBED_LIMIT:-150}

everywhere() { # RANKS... -- NAME ARGS...
    local ranks=() n
    while [ "$1" != -- ]; do ranks+=("$1"); shift; done
    shift
    for n in "${ranks[@]}"; do program strata "$limit" "$n" "$@"; done
    program ob1 "$limit" "${ranks[0]}" "$@"
}

everywhere 2 5 -- modes
everywhere 2 3 8 -- matching
everywhere 2 4 -- probe
everywhere 2 -- truncate
everywhere 2 -- status
everywhere 2 3 -- datatypes
everywhere 2 5 -- bsend
everywhere 2 4 -- requests
everywhere 2 3 5 8 -- collectives
everywhere 2 5 8 -- intercomm
everywhere 2 4 8 -- comms
everywhere 2 4 -- threads
everywhere 2 4 -- --mca osc pt2pt onesided
# 50 in a row, in portions: a spawn that hangs in Open MPI is tried again, see lib.sh.
for portion in 1 2 3 4 5; do program strata "$limit" $((portion % 3 + 1)) spawn 10; done
everywhere 4 -- spawn 3
everywhere 2 -- tool
everywhere 2 -- large
# Memory is Strata's where that helps, unless the user or another pml says otherwise.
program strata "$limit" 2 --mca osc pt2pt alloc_mem foreign
program strata "$limit" 4 --mca pml_strata_mpool hugepage alloc_mem hugepage threads 100
program strata "$limit" 2 --mca mpool ^strata --mca osc pt2pt alloc_mem foreign
program ob1 "$limit" 2 --mca mca_base_component_path "$plugin:SYSTEM_DEFAULT" alloc_mem threads 100
finish
