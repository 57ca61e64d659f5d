# shellcheck shell=bash
# One package's programs over the plugin and over Open MPI's own pml: package NAME [OPTIONS]. Sourced. In the short form each program
# runs on its smallest problem with two ranks.
# shellcheck disable=SC2154 # what lib.sh sets
. "$STRATA_SOURCE/tests/embed/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
[ -x /usr/bin/python3 ] || skip "no /usr/bin/python3 (Debian: python3)"
export TMPDIR=$work STRATA_BUILD PYTHONDONTWRITEBYTECODE=1
package() {
    local options=()
    full_form || options=(--short --ranks 2)
    say_form "$1$(form ", the smallest problems" "")"
    /usr/bin/python3 "$STRATA_SOURCE/tests/embed/packages/run.py" --plugin "$plugin" --mpirun "$strata_mpirun" \
        "${options[@]}" "$@"
}
