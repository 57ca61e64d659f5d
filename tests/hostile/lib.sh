# shellcheck shell=bash
# Sourced by the tests of this folder.
set -u
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
    timeout 200 "$@" >"$work/out" 2>"$work/err"
    status=$?
    if [ "$want" = nonzero ]; then
        [ $status -ne 0 ] && [ $status -ne 124 ] || complain "status $status: $*"
    else
        [ $status -eq "$want" ] || complain "status $status, not $want: $*"
    fi
    ! grep -qiE 'SIGBUS|bus error|segmentation|AddressSanitizer|runtime error' "$work/err" || complain "crashed: $*"
}
says() { # REGEX: the errors of the last run contain it
    grep -qiE -- "$1" "$work/err" || complain "nothing says '$1'"
}
# What a job may leave behind: files in /dev/shm and /tmp, processes of the test program.
snapshot() { { ls -A /dev/shm /tmp 2>/dev/null | grep -E 'strata|pmix' || true; } | sort >"$work/before"; }
nothing_left() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        { ls -A /dev/shm /tmp 2>/dev/null | grep -E 'strata|pmix' || true; } | sort >"$work/after"
        if [ -z "$(comm -13 "$work/before" "$work/after")" ] && ! pgrep -f "$hostile .*$1" >/dev/null; then
            return 0
        fi
        sleep 0.2
    done
    complain "left behind: $(comm -13 "$work/before" "$work/after" | tr '\n' ' ') processes: $(pgrep -fa "$hostile .*$1")"
    pgrep -f "$hostile .*$1" | xargs -r kill -9
}
finish() {
    [ "$failures" -eq 0 ] && echo "all passed" && exit 0
    exit 1
}
