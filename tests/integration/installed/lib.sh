# shellcheck shell=bash
# Shared by plugin_test.sh and the scripts that it runs, which find: $root, where Strata is installed; $work, a folder of their own,
# with $work/examples, a copy of docs/examples; tools on the PATH; pkg-config; $HOME, a user's who has no components yet. Sourced.
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
