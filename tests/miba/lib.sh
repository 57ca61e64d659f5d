# shellcheck shell=bash
# Shared by the tests of strata-miba, which runs on softhca in all of them. Sourced.
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
tool=$STRATA_BUILD/strata-miba
[ -x "$tool" ] || skip "strata-miba was not built (Debian: libibverbs-dev)"
command -v python3 >/dev/null || skip "python3 is missing"
unset SOFTHCA_COST SOFTHCA_COST_CACHE SOFTHCA_MTU SOFTHCA_LINK
# Few and short samples: no test here judges a time. A busy machine may keep a side from answering for seconds.
# shellcheck disable=SC2034 # for those that source this
quick=(--samples 3 --time 1 --timeout 60)

check() { # description command...
    n_checks=$((n_checks + 1))
    local what=$1
    shift
    "$@" || fail "$what" "$work/short" "$work/err"
}
# shellcheck disable=SC2053 # a pattern
matches() { [[ $1 == $2 ]]; } # TEXT PATTERN
miba() { # STATUS-PATTERN ARGS...: output in $work/out and $work/err
    local wanted=$1 status=0
    shift
    soft 60 "$tool" "$@" >"$work/out" 2>"$work/err" || status=$?
    tail -n 8 "$work/out" >"$work/short"
    check "strata-miba $*: exit status $status instead of $wanted" matches "$status" "$wanted"
}
out_has() { check "stdout has \"$1\"" grep -qE -- "$1" "$work/out"; }
out_lacks() { check "stdout has \"$1\"" test "$(grep -cE -- "$1" "$work/out")" = 0; }
err_has() { check "stderr has \"$1\"" grep -qE -- "$1" "$work/err"; }
# An expression of d, the objects of JSON lines, and r, those of them that are results.
lines() { # PYTHON-EXPRESSION [FILE]
    check "JSON: $1" python3 -c "import json, sys
d = [json.loads(line) for line in open(sys.argv[1])]
r = [o for o in d if 'figure' in o]
assert ($1)" "${2-$work/out}"
}
