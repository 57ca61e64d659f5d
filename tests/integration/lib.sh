# shellcheck shell=bash
# Shared by the integration tests: a folder of their own, checks, a summary. Sourced.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
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

# Runs a command: status in $status ("hung" after job_limit seconds), output in $work/out and $work/err.
run() { bounded "$@" >"$work/out" 2>"$work/err" </dev/null; }

expect_status() { # status command...
    local wanted=$1
    shift
    run "$@"
    n_checks=$((n_checks + 1))
    [ "$status" = "$wanted" ] || fail "$*: exit status $status instead of $wanted"
}

err_has() { check "stderr has \"$1\"" grep -q -- "$1" "$work/err"; }
out_has() { check "stdout has \"$1\"" grep -q -- "$1" "$work/out"; }
# No process with exactly this command line is left, after the moment that the kernel takes to end one.
nobody() { ! pgrep -f "^$1\$" >/dev/null; }
nobody_runs() { check "a process is left: $1" wait_until nobody "$1"; }
no_files() { check "files are left: $(ls -A "$TMPDIR")" test -z "$(ls -A "$TMPDIR")"; }
no_files_soon() { check "files are left: $(ls -A "$TMPDIR")" wait_until folder_is_empty "$TMPDIR"; }
folder_is_empty() { [ -z "$(ls -A "$1")" ]; }

build_cxx() { # SOURCE PROGRAM FLAGS...: a C++17 program over libstrata in $work; without FLAGS it compiles with either compiler
    local flags=(-std=c++17 -Wall -Wextra -Werror -pedantic -I"$STRATA_SOURCE/include" -I"$STRATA_BUILD/include")
    if [ $# = 2 ] && command -v clang++ >/dev/null; then
        # clang++ reads the header once for all programs. g++ tells whether a program includes all that it uses.
        [ -f "$work/clang.pch" ] ||
            expect_status 0 clang++ "${flags[@]}" -x c++-header "$STRATA_SOURCE/include/strata/channel_patterns.hpp" -o "$work/clang.pch"
        expect_status 0 clang++ "${flags[@]}" -include-pch "$work/clang.pch" -fsyntax-only "$1"
    fi
    # shellcheck disable=SC2086
    expect_status 0 g++ "${flags[@]}" ${SANITIZER_FLAGS-} "$1" -o "$work/$2" -L"$STRATA_BUILD/.libs" -lstrata \
        -Wl,-rpath,"$STRATA_BUILD/.libs" "${@:3}"
}

finish() {
    echo "$n_checks checks, $n_failed failed"
    [ "$n_failed" = 0 ]
    exit
}
