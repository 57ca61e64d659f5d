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

# Runs a command with a limit of 240 s: status in $status, output in $work/out and $work/err, seconds in $seconds.
run() {
    local begin=$EPOCHREALTIME
    timeout -k 5 240 "$@" >"$work/out" 2>"$work/err" </dev/null
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
# The job that was run last has ended by itself and soon. On a busy machine, and with sanitizers, it may take longer than
# that, by what a job without a fault takes there at the moment.
faster_than() {
    local begin usual=0
    if awk -v s="$seconds" -v l="$1" 'BEGIN { exit s < l }'; then
        begin=$EPOCHREALTIME
        strata-run -n 4 sh -c 'sleep 0.1' >/dev/null 2>&1
        usual=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    fi
    check "$1 s are not enough: $seconds s, where a job that does nothing takes $usual s" \
        awk -v s="$seconds" -v l="$1" -v usual="$usual" 'BEGIN { exit !(s < l + 5 * usual) }'
}
nobody() { ! pgrep -f "^$1" >/dev/null; }
nobody_runs() { check "a process is left: $1" nobody "$1"; }
no_files() { check "files are left: $(ls -A "$TMPDIR")" test -z "$(ls -A "$TMPDIR")"; }

finish() {
    echo "$n_checks checks, $n_failed failed"
    [ "$n_failed" = 0 ]
    exit
}
