# shellcheck shell=bash
# What the tests of tests/guest/run itself share: the checks of the integration tests, the guest, and more time. Sourced.
. "$STRATA_SOURCE/tests/integration/lib.sh"
export PATH=$PATH:/usr/sbin:/sbin
guest=$STRATA_SOURCE/tests/guest/run

# As the integration tests' run, with a limit for an emulated processor on a busy machine; ends the test, skipped, when there can be
# no guest.
run() {
    timeout -k 5 960 "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    if [ "$status" = 77 ] && [ "$1" = "$guest" ]; then
        cat "$work/err"
        exit 77
    fi
}
no_guests() { ! pgrep -f "qemu.*$TMPDIR/" >/dev/null; }
# Within some seconds no guest of this test, and no file of one, is left.
soon_gone() {
    local i
    for ((i = 0; i < 50; i++)); do
        if no_guests && [ -z "$(ls -A "$TMPDIR")" ]; then return 0; fi
        sleep 0.1
    done
    return 1
}
