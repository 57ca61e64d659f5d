#!/usr/bin/env bash
# How long whole jobs take that only start and end: docs/examples/hello by each launcher, in turn, and /bin/true by the same launcher beside
# it. Medians and the least, seconds. RANKS=64, ROUNDS=9. srun where Slurm is installed, as root: on this machine alone, with daemons
# of its own. A job that takes ten seconds is ended and not counted; exit status 1.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/slurm.sh"
ranks=${RANKS:-64} rounds=${ROUNDS:-9} hello=$STRATA_BUILD/docs/examples/hello
work=$(mktemp -d) state=
trap '[ -z "$state" ] || slurm_stop; rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

launchers=(strata-run softhca)
command -v mpirun.openmpi >/dev/null && launchers+=(mpirun)
missing=$(slurm_missing)
if [ -z "$missing" ]; then
    state=$work/slurm
    mkdir "$state"
    chmod 755 "$work"
    if slurm_alone && slurm_has_pmix; then launchers+=(srun); else missing="Slurm did not come up with pmix"; fi
fi
[ -z "$missing" ] || echo "start.sh: without srun: $missing" >&2

job() { # LAUNCHER PROGRAM
    case $1 in
    strata-run) timeout -k 2 10 strata-run -n "$ranks" "$2" ;;
    softhca) timeout -k 2 10 strata-run --softhca -n "$ranks" "$2" ;;
    mpirun) timeout -k 2 10 mpirun.openmpi --oversubscribe --bind-to none -n "$ranks" "$2" ;;
    srun) timeout -k 2 10 srun --mpi=pmix --overcommit -n "$ranks" "$2" ;;
    esac
}
status=0
for ((i = 0; i < rounds; i++)); do
    for launcher in "${launchers[@]}"; do
        for program in "$hello" /bin/true; do
            begin=${EPOCHREALTIME/[.,]/}
            if job "$launcher" "$program" >"$work/out" 2>&1; then
                awk -v a="$begin" -v b="${EPOCHREALTIME/[.,]/}" 'BEGIN { print (b - a) / 1e6 }' >>"$work/$launcher.$(basename "$program")"
            else # Open MPI's mpirun may hang at the end of programs that do not join
                echo "start.sh: $launcher, $program: not counted: $(tail -n 1 "$work/out")" >&2
                status=1
            fi
        done
    done
done
printf '%d ranks, %d rounds, %d processors, load %s\n' "$ranks" "$rounds" "$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)"
printf '%-12s%12s%10s%12s%10s\n' launcher 'hello, s' least '/bin/true' least
for launcher in "${launchers[@]}"; do
    printf '%-12s' "$launcher"
    for program in hello true; do
        sort -g "$work/$launcher.$program" | awk '{ v[NR] = $1 } END { printf "%12.3f%10.3f", v[int((NR + 1) / 2)], v[1] }'
    done
    echo
done
exit $status
