#!/bin/bash
# Channels whose other end is killed, in each state that tests/programs/channel_death.c has, over shared memory, TCP and softhca: each call
# returns with the error, what had arrived is delivered, other channels go on.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
program=$STRATA_BUILD/tests/programs/channel_death
status=0 out=$(mktemp)
trap 'rm -f "$out"' EXIT
try() { # STATE [mends] OPTION-OF-STRATA-RUN...: mends: broken connections are made again
    local state=$1 out ended mends=
    shift
    [ "$1" != mends ] || { mends=mends && shift; }
    out=$(timeout -k 5 "$job_limit" strata-run "$@" --keep-going -n 3 "$program" "$state" ${mends:+"$mends"} 2>&1)
    ended=$?
    if [ $ended = 137 ] && [ "$(grep -c 'goes on$' <<<"$out")" = 2 ]; then
        echo "$state, $*: the survivors go on"
    else
        echo "FAILED: $state, $*: status $ended: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        return 1
    fi
}
states=$("$program" --states) && [ -n "$states" ] || { echo "FAILED: $program names no states" && exit 1; }
# A sanitizer's library has to come before softhca's.
softhca=
if [ -z "${SANITIZER_FLAGS-}" ] && openib_on_softhca; then
    softhca=yes
else
    echo "left out: softhca (not in this build, or a sanitizer is)"
fi
without_softhca() { # STATE
    local rc=0
    try "$1" --mca btl sm,self || rc=1
    try "$1" mends --mca btl tcp,self || rc=1
    return $rc
}
for state in $states; do
    without_softhca "$state" >"$out" &
    [ -z "$softhca" ] || try "$state" --softhca --mca btl openib,self || status=1
    wait $! || status=1
    cat "$out"
done
exit $status
