#!/bin/bash
# The same binaries under Open MPI's mpirun, whose server side is libpmix too.
# starts first
. "$STRATA_SOURCE/tests/integration/lib.sh"
command -v mpirun.openmpi >/dev/null || { echo "skipped: mpirun.openmpi is not installed (Debian: openmpi-bin)"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
probe=$STRATA_BUILD/tests/programs/launch_probe
mpirun="mpirun.openmpi --oversubscribe"

expect_status 0 $mpirun -n 1 "$probe" fence; out_has "^rank 0 of 1$"
expect_status 0 $mpirun -n 4 "$probe" fence
for r in 0 1 2 3; do out_has "^rank $r of 4$"; done
expect_status 0 $mpirun -n 2 "$probe" twice
expect_status 0 $mpirun -n 4 "$STRATA_BUILD/docs/examples/ring"; out_has ": ok$"
if [ -x "$STRATA_BUILD/components/rte_pmix/tests/job_test" ]; then
    expect_status 0 $mpirun -n 3 "$STRATA_BUILD/components/rte_pmix/tests/job_test"
fi
run $mpirun -n 3 "$probe" kill 1 9
check "a killed rank ends the job" test "$status" -ne 0
run $mpirun -n 3 "$probe" abort 2 6
check "strata_abort ends the job" test "$status" -ne 0
# With --enable-recovery mpirun tells nobody of a rank that was killed, and does not end the fences of the others.
# The jobs run two at a time: most of each is waiting. Each has its own folder for temporary files: two mpiruns that
# make their common session folder at once can fail with "File exists".
death() { # WHEN
    work=$work/$1 TMPDIR=$work/$1/tmp n_checks=0 n_failed=0
    mkdir -p "$TMPDIR"
    run $mpirun --enable-recovery -x STRATA_MCA_btl=sm,self -x STRATA_MCA_mca_base_fence_after_failure_ms=500 -n 3 \
        "$STRATA_BUILD/tests/programs/peer_death" "$1"
    check "killed $1: the others are told and go on" test "$(grep -c 'goes on$' "$work/out")" = 2
    check "killed $1: nobody waits for ever at the end" test "$(grep -c watchdog "$work/err")" = 0
    finish
}
pids=()
for when in before connecting heard connected sending; do
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    death "$when" &
    pids+=($!)
done
for pid in "${pids[@]}"; do check "a rank that is killed" wait "$pid"; done
expect_status 0 $mpirun --mca btl self -x STRATA_MCA_mca_base_verbose=1 -n 2 "$probe" fence # its --mca is not ours
finish
