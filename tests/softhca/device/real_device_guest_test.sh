#!/bin/bash
# A real device while softhca is loaded: Soft-RoCE in the guest, with libsofthca preloaded. Both are listed, programs run over
# either, the verbs suite passes on the real one, and one process uses both.
# guest:
# short form: not run
library=$STRATA_BUILD/softhca/.libs/libsofthca.so
if [ ! -f "$library" ] || [ ! -x "$STRATA_BUILD/tests/softhca/device/two_devices" ] || [ -n "${SANITIZER_FLAGS-}" ]; then
    echo "SKIPPED: no libsofthca in this build, or one with a sanitizer"
    exit 77
fi
. "$STRATA_SOURCE/tests/guest/lib.sh"
loaded=(env LD_PRELOAD="$library")

expect_status 0 "${loaded[@]}" ibv_devices
out_has rxe0; out_has soft0
expect_status 0 "${loaded[@]}" ibv_devinfo -v -d rxe0
out_has PORT_ACTIVE; out_has "GID\[ *1\]:.*::ffff:10.77.0.10, RoCE v2"

for options in "-d rxe0 -g 1" "-d rxe0 -g 1 -e" "-d soft0"; do
    # shellcheck disable=SC2086 # they are words
    expect_status 0 both "${loaded[@]}" ibv_rc_pingpong $options
    check "both sides, $options" test "$(grep -c '^1000 iters' "$work/out")" = 2
done

expect_status 0 "${loaded[@]}" "$STRATA_BUILD/tests/softhca/device/two_devices" soft0 rxe0
out_has "soft0 and rxe0: 400 messages each"

export VERBS_DEVICE=rxe0 VERBS_PRELOAD=$library
expect_status 0 bash "$STRATA_SOURCE/tests/verbs/run_suite.sh" "$STRATA_BUILD" send completion events objects
grep '^VERBS SUITE' "$work/out"
finish
