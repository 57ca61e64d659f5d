#!/bin/bash
# MPI programs over btl_openib on a real kernel's verbs: Soft-RoCE in a guest.
. "$STRATA_SOURCE/tests/guest/lib.sh"
command -v mpirun.openmpi >/dev/null || { echo "SKIP: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
[ -e "$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so" ] || { echo "SKIP: mca_pml_strata was not built"; exit 77; }

cat >"$work/programs" <<'END_OF_SCRIPT'
cd /tmp
mkdir /tmp/plugin
ln -s "$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so" /tmp/plugin
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_mca_base_component_path=/tmp/plugin:SYSTEM_DEFAULT OMPI_MCA_pml=strata OMPI_MCA_pml_strata_btl=openib,self
status=0
for name in truncate datatypes collectives; do
    timeout -k 5 300 mpirun.openmpi -n 2 "$STRATA_BUILD/tests/embed/programs/$name" || status=$?
done
exit $status
END_OF_SCRIPT
expect_status 0 "$guest" bash "$work/programs"
check "three programs without a failure" test "$(grep -c ' 0 failed$' "$work/out")" = 3
finish
