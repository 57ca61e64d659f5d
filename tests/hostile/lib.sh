# shellcheck shell=bash
# Sourced by the tests of this folder.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
failures=0
hostile=$STRATA_BUILD/tests/programs/hostile
work=$(mktemp -d "${TMPDIR:-/tmp}/hostile-test.XXXXXX")
trap 'rm -rf "$work"' EXIT

complain() {
    echo "FAILED: $*" >&2
    [ ! -s "$work/err" ] || sed 's/^/    | /' "$work/err" | tail -25 >&2
    failures=$((failures + 1))
}
# run WANTED-STATUS COMMAND...: output in $work/out, errors in $work/err; WANTED may be "nonzero".
run() {
    local want=$1 status
    shift
    bounded "$@" >"$work/out" 2>"$work/err"
    if [ "$want" = nonzero ]; then
        [ "$status" != 0 ] && [ "$status" != 124 ] && [ "$status" != hung ] || complain "status $status: $*"
    else
        [ "$status" = "$want" ] || complain "status $status, not $want: $*"
    fi
    [ -n "${crash_wanted-}" ] || ! grep -qiE 'SIGBUS|bus error|segmentation|AddressSanitizer|runtime error' "$work/err" ||
        complain "crashed: $*"
}
# COMMAND...: the same in the background, as $job.
in_background() {
    # The output of the last run is not that of this one.
    : >"$work/out"
    : >"$work/err"
    "$@" >"$work/out" 2>"$work/err" &
    # shellcheck disable=SC2034 # for those that source this
    job=$!
}
says() { # REGEX: the errors of the last run contain it
    grep -qiE -- "$1" "$work/err" || complain "nothing says '$1'"
}
# What a job may leave behind: files in its own temporary folder and in /dev/shm, processes of the test program. Other
# jobs of the machine may come and go meanwhile.
snapshot() {
    export TMPDIR=$work/tmp
    mkdir -p "$TMPDIR"
    ls -A /dev/shm | sort >"$work/before"
}
left_now() {
    ls -A "$TMPDIR"
    ls -A /dev/shm | sort | comm -13 "$work/before" - | grep -i strata
    pgrep -fa "$hostile .*$1"
}
nothing_is_left() { [ -z "$(left_now "$1")" ]; }
nothing_left() {
    wait_until nothing_is_left "$1" && return
    complain "left behind: $(left_now "$1" | tr '\n' ' ')"
    pgrep -f "$hostile .*$1" | xargs -r kill -9
}
finish() {
    [ "$failures" -eq 0 ] && echo "all passed" && exit 0
    exit 1
}
