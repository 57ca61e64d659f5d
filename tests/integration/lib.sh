# shellcheck shell=bash
# What the integration tests share: a folder of their own, checks, a summary. Sourced.
set -u
work=$(mktemp -d "${TMPDIR:-/tmp}/strata-test.XXXXXX")
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
n_checks=0 n_failed=0
trap 'rm -rf "$work"' EXIT

fail() { # what...
    n_failed=$((n_failed + 1))
    echo "FAIL: $*"
    if [ -s "$work/out" ]; then echo "--- stdout"; head -c 2000 "$work/out"; fi
    if [ -s "$work/err" ]; then echo "--- stderr"; head -c 2000 "$work/err"; fi
    return 0
}

check() { # description command...
    n_checks=$((n_checks + 1))
    local what=$1
    shift
    "$@" || fail "$what"
}

# Runs a command with a limit of 60 s: status in $status, output in $work/out and $work/err, seconds in $seconds.
run() {
    local begin=$EPOCHREALTIME
    timeout -k 5 60 "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }')
}

expect_status() { # status command...
    local wanted=$1
    shift
    run "$@"
    n_checks=$((n_checks + 1))
    [ "$status" = "$wanted" ] || fail "$*: exit status $status instead of $wanted"
}

err_has() { check "stderr has \"$1\"" grep -q -- "$1" "$work/err"; }
out_has() { check "stdout has \"$1\"" grep -q -- "$1" "$work/out"; }
# Programs with a sanitizer take as long to begin and end on a busy machine as all else together.
faster_than() {
    check "$1 s are not enough: $seconds s" awk -v s="$seconds" -v l="$1" -v slow="${SANITIZER_FLAGS:+3}" \
        'BEGIN { exit !(s < l * (slow ? slow : 1)) }'
}
nobody() { ! pgrep -f "^$1" >/dev/null; }
nobody_runs() { check "a process is left: $1" nobody "$1"; }
no_files() { check "files are left: $(ls -A "$TMPDIR")" test -z "$(ls -A "$TMPDIR")"; }

finish() {
    echo "$n_checks checks, $n_failed failed"
    [ "$n_failed" = 0 ]
    exit
}
