#!/bin/bash
# Open MPI's own openib BTL, unmodified, over softhca: the MPI programs of tests/embed with 2 to 8 ranks, in the short form 2 to 4.
# MPI_Comm_spawn is left out: Debian's Open MPI 4.1.4 with PMIx 4.2.2 hangs in it now and then whatever carries the messages.
# starts first
. "$STRATA_SOURCE/tests/softhca/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
command -v mpirun.openmpi >/dev/null || skip "mpirun.openmpi is not installed (Debian: openmpi-bin)"
programs=$STRATA_BUILD/tests/embed/programs
[ -x "$programs/modes" ] || skip "the MPI programs were not built"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 PMIX_MCA_gds=hash
export OMPI_MCA_orte_tmpdir_base=$work
# Open MPI 4.1.4 calls openib once more after it has unloaded it (docs/design/softhca.md); loaded beforehand it stays where it is.
openib=$(ompi_info --path pkglibdir --parsable | cut -d: -f3)/mca_btl_openib.so
[ -e "$openib" ] || skip "Open MPI has no openib: $openib"
# Ranks that wait call sched_yield, which takes minutes beside other tests: yield_sleeps.c.
idle=$STRATA_BUILD/tests/softhca/programs/.libs/yield_sleeps.so
[ -e "$idle" ] || skip "not built: $idle"
# Not every check holds for ob1: the programs know which.
export EMBED_REFERENCE=1

run() { # RANKS NAME ARGS...
    local n=$1 status=0 begin
    shift
    begin=$(now_ms)
    timeout -k 5 900 mpirun.openmpi --oversubscribe -x LD_PRELOAD="$preload:$openib:$idle" --mca pml ob1 --mca btl openib,self \
        --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0 -n "$n" "$programs/$1" "${@:2}" \
        </dev/null >"$work/out" 2>&1 &
    pids=($!)
    wait $! || status=$?
    pids=()
    if [ "$status" -eq 0 ] && grep -q ' 0 failed$' "$work/out"; then
        checked "$* with $n ranks: $(grep ' 0 failed$' "$work/out")" "$begin"
    else
        fail "$* with $n ranks: status $status" "$work/out"
    fi
}

say_form "$(form "nine programs, once each" "twelve programs, with several numbers of ranks")"
for n in $(form 2 '2 8'); do
    for name in modes collectives requests; do run "$n" "$name"; done
    ! full_form || run "$n" comms
done
for n in $(form 3 '2 3'); do run "$n" datatypes; done
for name in matching probe; do run "$(form 3 4)" "$name"; done
run "$(form 2 4)" threads "$(form 30 200)"
run "$(form 3 5)" bsend
if full_form; then # communicators use verbs like the collective operations
    run 5 intercomm
    run 8 intercomm
fi
run "$(form 2 4)" onesided
! full_form || run 2 large
finish
