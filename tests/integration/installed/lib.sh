# shellcheck shell=bash
# Shared by plugin_test.sh and the scripts that it runs, which find: $root, where Strata is installed; $work, a folder of their own,
# with $work/examples, a copy of the installed examples; tools on the PATH; pkg-config; $HOME, a user's who has no components yet. Sourced.
. "$STRATA_SOURCE/tests/support/wait.sh"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

exports_only() { # FILE SYMBOL
    local exported
    exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[BDRTVW]/ && $3 !~ /^_/ && $3 !~ /san/ { print $3 }')
    [ "$exported" = "$2" ] || fail "$1 exports more than its component: $exported"
}

work=${work-} root=${root-}

conform() { # RANKS|threads TRANSPORT [CASE]...: strata-conformance passes, and the contract is among what it ran
    local out one run=(strata-conformance --mca btl "self,$2")
    if [ "$1" != threads ]; then run=(strata-run --timeout "$job_limit" -n "$1" "${run[@]}"); fi
    for one in "${@:3}"; do run+=(--only "$one"); done
    out=$("${run[@]}" 2>&1) || fail "${run[*]}: status $?: $(grep -v '^passed\|^left out' <<<"$out" | tail -n 20)"
    grep -q "^passed   transport/.* over $2\$" <<<"$out" || fail "${run[*]}: the contract was not tested: $out"
    echo "${run[*]}: $(tail -n 1 <<<"$out")"
}
