#!/bin/bash
# Connections of btl_tcp that are reset again and again, in the middle of a message: no message is lost or doubled.
. "$STRATA_SOURCE/tests/integration/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form "basic messages and traffic" "all messages and clients, too")"
program=$(command -v strata-conformance)
[ ! -x "$STRATA_BUILD/.libs/strata-conformance" ] || program=$STRATA_BUILD/.libs/strata-conformance # not the script in front of it
case $(ldd "$program" 2>&1) in
*libasan* | *libtsan* | *"not a dynamic"*) echo "skipped: nothing can be preloaded into this build"; exit 77 ;;
esac
"${CC:-cc}" -O -shared -fPIC -Wall -Wextra -Werror -o "$work/resets.so" "$STRATA_SOURCE/tests/cluster/data/resets.c" -ldl || {
    echo "FAIL: the library that resets connections does not build"
    exit 1
}
with_resets() { # EVERY RANKS CASES...
    local every=$1 ranks=$2 only=()
    shift 2
    for case in "$@"; do only+=(--only "$case"); done
    : >"$work/resets"
    run strata-run --timeout "$job_limit" -n "$ranks" --mca btl tcp,self --mca pml_ob1_path_retry_ms 1 env LD_PRELOAD="$work/resets.so" \
        STRATA_TEST_RESETS="$every" STRATA_TEST_RESETS_FILE="$work/resets" strata-conformance "${only[@]}"
    check "a reset after each $every messages, $*: ends well" test "$status" = 0
    check "a reset after each $every messages, $*: cases were run and none failed" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
    check "a reset after each $every messages, $*: there were some" test -s "$work/resets"
}
with_resets 50 2 messages/basic/
with_resets 22 4 messages/basic/ # often enough for handshakes, and connections by which nothing has come yet
with_resets 40 4 messages/traffic/
if full_form; then
    with_resets 100 4 messages/
    with_resets 100 4 clients/
fi
finish
