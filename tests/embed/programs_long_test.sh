#!/bin/bash
# Our own MPI programs over the plugin, at several numbers of ranks, and once over Open MPI's own pml, which validates the
# programs themselves. The short form runs each program once, over the plugin.
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
limit=${EMBED_LIMIT:-600} # seconds for a program: a safety net
say_form "$(form "each program over Strata, once" "each program over Strata and over ob1")"

everywhere() { # RANKS... -- NAME ARGS...: in the short form with $short ranks, or the first number of ranks
    local ranks=() n
    while [ "$1" != -- ]; do ranks+=("$1"); shift; done
    shift
    if ! full_form; then
        program strata "$limit" "${short-${ranks[0]}}" "$@"
        return
    fi
    for n in "${ranks[@]}"; do program strata "$limit" "$n" "$@"; done
    program ob1 "$limit" "${ranks[0]}" "$@"
}

everywhere 2 5 -- modes
short=3 everywhere 2 3 8 -- matching
everywhere 2 4 -- probe
if full_form; then # the short form has them in smoke_test.sh
    everywhere 2 -- truncate
    everywhere 2 -- status
    everywhere 2 3 -- datatypes
    everywhere 2 -- tool
fi
everywhere 2 5 -- bsend
everywhere 2 4 -- requests
short=3 everywhere 2 3 5 8 -- collectives
short=5 everywhere 2 5 8 -- intercomm
everywhere 2 4 8 -- comms "$(form 500 5000)"
! full_form || everywhere 2 4 -- threads
full_form || program strata "$limit" 4 threads 10
everywhere 2 4 -- "${one_sided[@]}" onesided
if full_form; then
    # 50 in a row, in portions: a spawn that hangs in Open MPI is tried again, see lib.sh.
    for portion in 1 2 3 4 5; do program strata "$limit" $((portion % 3 + 1)) spawn 10; done
fi
everywhere "$(form 2 4)" -- spawn "$(form 2 3)"
! full_form || everywhere 2 -- large # takes 6 GiB; huge_long_test has the same lengths without the plugin
# Memory is Strata's where that helps, unless the user or another pml says otherwise.
program strata "$limit" 2 "${one_sided[@]}" alloc_mem foreign
program strata "$limit" "$(form 2 4)" --mca pml_strata_mpool hugepage alloc_mem hugepage threads "$(form 10 100)"
program strata "$limit" 2 --mca mpool ^strata "${one_sided[@]}" alloc_mem foreign
program ob1 "$limit" 2 --mca mca_base_component_path "$plugin:SYSTEM_DEFAULT" alloc_mem threads "$(form 10 100)"
finish
