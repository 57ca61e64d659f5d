#!/bin/bash
# embed/mtcl: the protocol of MTCL, compiled against a small stand-in of MTCL's interface; one process that echoes, three that call.
. "$STRATA_SOURCE/tests/integration/lib.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
command -v g++ >/dev/null || { echo "SKIP: no g++"; exit 77; }
flags=(-std=c++17 -Wall -Wextra -Werror -I"$STRATA_SOURCE/include" -I"$STRATA_BUILD/include" -I"$STRATA_SOURCE/tests/integration/data"
    -I"$STRATA_SOURCE/embed/mtcl")
program=$STRATA_SOURCE/tests/integration/data/mtcl_pair.cc
if command -v clang++ >/dev/null; then expect_status 0 clang++ "${flags[@]}" -fsyntax-only "$program"; fi
# shellcheck disable=SC2086
expect_status 0 g++ "${flags[@]}" ${SANITIZER_FLAGS-} "$program" -o "$work/pair" -L"$STRATA_BUILD/.libs" -lstrata \
    -Wl,-rpath,"$STRATA_BUILD/.libs" -pthread
export STRATA_CHANNEL_SECRET='a secret of some length'
timeout "$job_limit" "$work/pair" serve "$work/socket" 3 >"$work/served" 2>&1 &
server=$!
wait_until grep -q '^listens' "$work/served"
for i in 1 2 3; do
    timeout "$job_limit" "$work/pair" call "$work/socket" >"$work/called.$i" 2>&1 &
    callers[i]=$!
done
for i in 1 2 3; do check "caller $i: $(cat "$work/called.$i")" wait "${callers[i]}"; done
check "the server: $(cat "$work/served")" wait "$server"
check "it has served" grep -q '^served' "$work/served"
finish
