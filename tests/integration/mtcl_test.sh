#!/bin/bash
# embed/mtcl: the protocol of MTCL, compiled against a small stand-in of MTCL's interface; one process that echoes, three that call,
# over shared memory and over sockets, where a message needs the sender until it has arrived.
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

# Callers of one process that echoes, over these transports.
pairs() {
    export STRATA_MCA_btl=$1
    local socket=STRATA:$work/socket-$1 server callers=() letter
    timeout "$job_limit" "$work/pair" serve "$socket" 3 >"$work/served" 2>&1 &
    server=$!
    wait_until grep -q '^listens' "$work/served"
    for letter in x y z; do
        timeout "$job_limit" "$work/pair" call "$socket" "$letter" >"$work/called.$letter" 2>&1 &
        callers+=("$letter:$!")
    done
    for letter in "${callers[@]}"; do check "$1, caller $letter: $(cat "$work/called.${letter%:*}")" wait "${letter#*:}"; done
    check "$1, the server: $(cat "$work/served")" wait "$server"
    check "$1: it has served" grep -q '^served' "$work/served"
}
pairs sm,self
pairs tcp,self

# One of two ends in its own way: it kills itself, or does not wait for the other, which takes nothing.
two() { # TRANSPORTS LISTENS SAYS CONNECTS STATUS
    export STRATA_MCA_btl=$1
    local socket=STRATA:$work/socket-$2-$1 server
    timeout "$job_limit" "$work/pair" "$2" "$socket" >"$work/served" 2>&1 &
    server=$!
    wait_until grep -q '^listens' "$work/served"
    expect_status "$5" timeout --foreground "$job_limit" "$work/pair" "$4" "$socket"
    check "$1, $2: $(cat "$work/served")" wait "$server"
    check "$1, $2: it has ended" grep -q "^$3" "$work/served"
}
export MALLOC_PERTURB_=165 # memory is not used after it was freed
for transports in sm,self tcp,self; do
    two $transports survive survived die 137
    two $transports busy 'was busy' leave 0
done
finish
