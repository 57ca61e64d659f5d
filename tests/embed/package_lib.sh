# shellcheck shell=bash
# One package's programs over the plugin and over Open MPI's own pml: package NAME [OPTIONS]. Sourced.
# shellcheck disable=SC2154 # what lib.sh sets
. "$STRATA_SOURCE/tests/embed/lib.sh"
[ -x /usr/bin/python3 ] || skip "no /usr/bin/python3 (Debian: python3)"
export TMPDIR=$work STRATA_BUILD PYTHONDONTWRITEBYTECODE=1
package() {
    /usr/bin/python3 "$STRATA_SOURCE/tests/embed/packages/run.py" --plugin "$plugin" --mpirun "$strata_mpirun" "$@"
}
