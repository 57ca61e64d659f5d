#!/bin/bash
# The same binaries under Slurm's srun --mpi=pmix: one node on loopback, everything in a folder of the test.
. "$STRATA_SOURCE/tests/integration/lib.sh"
. "$STRATA_SOURCE/tests/support/slurm.sh"
skip() { echo "skipped: $*"; exit 77; }
missing=$(slurm_missing)
[ -z "$missing" ] || skip "$missing"

state=$work/slurm
trap 'slurm_stop; rm -rf "$work"' EXIT
mkdir -p "$state"
chmod 755 "$work" "$TMPDIR"
if ! slurm_alone; then
    fail "Slurm did not come up"
    finish
fi
slurm_has_pmix || skip "this Slurm has no pmix plugin (Debian: slurm-wlm-basic-plugins)"

probe=$STRATA_BUILD/tests/programs/launch_probe
srun="srun --mpi=pmix --overcommit"
expect_status 0 $srun -n 1 "$probe" fence; out_has "^rank 0 of 1$"
expect_status 0 $srun -n 2 "$probe" fence; out_has "^rank 1 of 2$"
expect_status 0 $srun -n 4 "$probe" fence; out_has "^rank 3 of 4$"
expect_status 0 $srun -n 2 "$probe" twice
expect_status 0 $srun -n 4 "$STRATA_BUILD/docs/examples/ring"; out_has ": ok$"
if [ -x "$STRATA_BUILD/components/rte_pmix/tests/job_test" ]; then
    expect_status 0 $srun -n 3 "$STRATA_BUILD/components/rte_pmix/tests/job_test"
fi
run $srun --kill-on-bad-exit=1 -n 3 "$probe" kill 1 9
check "a killed rank ends the job" test "$status" -ne 0
# Not at once: srun forgets the status of a step that ends before it has heard of every launch, of which -v tells.
run $srun -v -n 3 sh -c 'until grep -q "tasks started" "$1"; do sleep 0.05; done; shift; exec "$@"' sh "$work/err" "$probe" abort 2 6
check "strata_abort ends the job" test "$status" -ne 0
finish
