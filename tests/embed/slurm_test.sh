#!/bin/bash
# MPI programs over the plugin under Slurm's srun --mpi=pmix, which starts them without mpirun: one node on loopback, everything in a
# folder of the test.
# shellcheck disable=SC2154 # what lib.sh sets
. "$STRATA_SOURCE/tests/embed/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/slurm.sh"
missing=$(slurm_missing)
[ -z "$missing" ] || skip "$missing"
state=$work/slurm
trap 'slurm_stop; rm -rf "$work"' EXIT
mkdir "$state"
chmod 755 "$work"
if ! slurm_alone; then
    fail "Slurm did not come up"
    finish
fi
slurm_has_pmix || skip "this Slurm has no pmix plugin (Debian: slurm-wlm-basic-plugins)"

export OMPI_MCA_mca_base_component_path=$plugin:SYSTEM_DEFAULT
under_srun() { # PML RANKS PROGRAM ARGS...
    OMPI_MCA_pml=$1 timeout -k 5 "$job_limit" srun --mpi=pmix --overcommit --kill-on-bad-exit=1 -n "$2" "$programs/$3" "${@:4}" \
        </dev/null >"$work/out" 2>&1
}
EMBED_REFERENCE=1 under_srun ob1 2 status || skip "this Open MPI does not run under this Slurm: $(head -n 3 "$work/out")"
for job in "2 status" "3 collectives"; do
    n_checks=$((n_checks + 1))
    # shellcheck disable=SC2086 # words
    if under_srun strata $job && grep -q ' 0 failed$' "$work/out"; then
        echo "ok: ${job#* }: $(grep ' 0 failed$' "$work/out")"
    else
        fail "${job#* } with ${job%% *} ranks under srun"
    fi
done
finish
