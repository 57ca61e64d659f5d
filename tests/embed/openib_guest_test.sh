#!/bin/bash
# MPI programs over btl_openib on a real kernel's verbs: Soft-RoCE in a guest. Not spawn: Debian's Open MPI leaves a spawned
# process hanging now and then where the machine is slow (hangs_at_start in lib.sh).
# guest:
# short form: not run
command -v mpirun.openmpi >/dev/null || { echo "SKIP: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
[ -e "$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so" ] || { echo "SKIP: mca_pml_strata was not built"; exit 77; }
. "$STRATA_SOURCE/tests/guest/lib.sh"

mkdir "$work/plugin"
ln -s "$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so" "$work/plugin"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_mca_base_component_path=$work/plugin:SYSTEM_DEFAULT OMPI_MCA_pml=strata OMPI_MCA_pml_strata_btl=openib,self
programs=(truncate "threads 4" probe)
full_form && programs=(truncate datatypes collectives "threads 20" tool probe requests bsend)
for program in "${programs[@]}"; do
    began=$SECONDS
    # shellcheck disable=SC2086 # a program and its arguments
    expect_status 0 mpirun.openmpi -n 2 "$STRATA_BUILD/tests/embed/programs/"$program
    check "$program: without a failure" grep -q ' 0 failed$' "$work/out"
    echo "$program: $(grep ' 0 failed$' "$work/out"), $((SECONDS - began)) s"
done
finish
