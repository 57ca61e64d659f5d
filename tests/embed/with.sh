#!/bin/bash
# The tests of the embedding over any Open MPI: 5.0, for which Debian 12 has no package, or another 4.1. Strata must have been
# configured with its --with-openmpi=PREFIX, and built. Our MPI programs are compiled by PREFIX's mpicc; they are started by its
# mpirun, by strata-run where it was built without one, or by srun (slurm).
# usage: tests/embed/with.sh PREFIX [SCRIPT of tests/embed]...     STRATA_BUILD: the build folder (build)
# Exit status: 0 all passed; 1 some failed; 2 wrong usage; 77 something is missing.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
if [ $# -eq 0 ] || [ ! -d "$1" ]; then
    sed -n '2,7s/^# //p' "$0" >&2
    exit 2
fi
prefix=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- smoke coll programs_long hostile_long alloc_mem openib openib_long slurm
build=$(cd "${STRATA_BUILD:-$source/build}" && pwd)
[ -x "$prefix/bin/mpicc" ] || { echo "SKIP: there is no $prefix/bin/mpicc"; exit 77; }
version=$("$prefix/bin/mpicc" --showme:version | sed -n 's/.*Open MPI v*\([0-9]*\.[0-9]*\).*/\1/p')
case $version in
4.1) plugin=$build/embed/openmpi/.libs ;;
5.0) plugin=$build/embed/openmpi-5.0/.libs ;;
*) echo "SKIP: $prefix is Open MPI $version; 4.1 and 5.0 are supported"; exit 77 ;;
esac
[ -f "$plugin/mca_pml_strata.so" ] ||
    { echo "SKIP: $build has no plugin for Open MPI $version; configure with --with-openmpi=$prefix"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in "$source"/tests/embed/programs/*.c; do
    name=${program##*/}
    "$prefix/bin/mpicc" -std=gnu11 -O2 -g -pthread -o "$work/${name%.c}" "$program" || { echo "FAIL: $name does not compile"; exit 1; }
done
export STRATA_BUILD=$build STRATA_SOURCE=$source EMBED_PREFIX=$prefix EMBED_PROGRAMS=$work EMBED_VERSION=$version STRATA_EMBED_DIR=$plugin
export STRATA_MCA_mca_component_path=$build/plugins STRATA_MCA_mca_param_files=none
export PATH="$build:$prefix/bin:$PATH" LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$prefix/bin/ompi_info" --version | head -n 1
passed=0 failed=0 skipped=0
for script; do
    rc=0
    echo "== $script"
    bash "$source/tests/embed/${script%_test.sh}_test.sh" || rc=$?
    case $rc in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) && echo "FAILED: $script" ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
