#!/bin/bash
# Channels in C++17 whose ends go early, late, or with their process (tests/integration/data/channel_ends.cc).
. "$STRATA_SOURCE/tests/integration/lib.sh"
command -v g++ >/dev/null || { echo "SKIP: no g++"; exit 77; }
export MALLOC_PERTURB_=165 # memory is not used after it was freed
build_cxx "$STRATA_SOURCE/tests/integration/data/channel_ends.cc" ends

ends() { # CASE RANKS: all come to the end
    expect_status 0 strata-run -n "$2" "$work/ends" "$1"
    check "$1: all ranks" test "$(grep -c ': ok$' "$work/out")" = "$2"
}
dies() { # CASE RANKS: all but rank 1 do
    run strata-run --keep-going -n "$2" "$work/ends" "$1"
    check "$1: status $status" test "$status" = 137
    check "$1: all other ranks" test "$(grep -c ': ok$' "$work/out")" = $(($2 - 1))
}
ends set_ends 2
dies set_dies 2
ends any_order 2
dies scatter_dies 3
dies farm_close_dies 4
dies farm_dies 4
dies emitter_dies 2
ends sender_unwinds 2
dies master_unwinds_dies 3
finish
