#!/bin/bash
# Channels whose other end is killed, in each state that tests/programs/channel_death.c has, over shared memory and over softhca: each call
# returns with the error, what had arrived is delivered, other channels go on.
set -u
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/preload.sh"
program=$STRATA_BUILD/tests/programs/channel_death
status=0 out=$(mktemp)
trap 'rm -f "$out"' EXIT
try() { # STATE OPTION-OF-STRATA-RUN...
    local state=$1 out ended
    shift
    out=$(timeout -k 5 "$job_limit" strata-run "$@" --keep-going -n 3 "$program" "$state" 2>&1)
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
for state in $states; do
    try "$state" --mca btl sm,self >"$out" &
    [ -z "$softhca" ] || try "$state" --softhca --mca btl openib,self || status=1
    wait $! || status=1
    cat "$out"
done
exit $status
