#!/usr/bin/env bash
# Programs of others that transpose, under Open MPI on softhca: FFT and PTRANS of hpcc, and FFTW-MPI, with coll strata off and on, beside
# ob1. coll_apps.sh FILE [--quick|--tiny] [--until TIME]: adds lines "PROGRAM RANKS WAY SECONDS" to FILE; what it has is not run again.
# RANKS="4 8"; Debian: hpcc, libfftw3-mpi-dev libfftw3-dev.
# shellcheck disable=SC2054 # commas within words
set -u
file=${1:?usage: coll_apps.sh FILE [--quick|--tiny] [--until TIME]}
shift
rounds=3 side=1600 fft="128 10" ranks=${RANKS:-4 8} until=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick) rounds=1 side=800 fft="64 10" ;;
    --tiny) rounds=1 side=200 fft="16 2" ranks=2 ;;
    --until) until=$2 && shift ;;
    esac # the others are of bench/coll.py
    shift
done
library=$STRATA_BUILD/softhca/.libs/libsofthca.so
plugins=$STRATA_BUILD/embed/openmpi/.libs
if ! command -v mpirun.openmpi >/dev/null || [ ! -e "$library" ] || [ ! -e "$plugins/mca_coll_strata.so" ]; then
    echo "coll_apps.sh: left out: no mpirun.openmpi, softhca or mca_coll_strata" >&2
    exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/strata-apps.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/plugin"
ln -s "$plugins/mca_pml_strata.so" "$plugins/mca_coll_strata.so" "$work/plugin"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
openib=$(ompi_info --path pkglibdir --parsable | awk -F: '{ print $NF }')/mca_btl_openib.so # docs/design/softhca.md
strata=(--mca mca_base_component_path "$work/plugin:SYSTEM_DEFAULT" --mca pml strata --mca pml_strata_btl openib,self -x "LD_PRELOAD=$library")
arrival=("${strata[@]}" --mca coll_strata_priority 40 --mca coll_strata_operations all --mca pml_strata_coll_arrival_ranks 1024 --mca pml_strata_coll_sm_ranks 0)
launch() { # WAY RANKS PROGRAM...
    local mca=()
    case $1 in
    ob1) mca=(--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0 -x "LD_PRELOAD=$library:$openib") ;;
    tuned) mca=("${strata[@]}" --mca coll_strata_priority 0) ;;
    coll-strata) mca=("${strata[@]}" --mca coll_strata_priority 40 --mca coll_strata_operations all) ;;
    *) mca=("${arrival[@]}" --mca pml_strata_coll_arrival_form "$1") ;;
    esac
    SOFTHCA_FABRIC=apps-$$ timeout -k 5 "${LIMIT:-300}" mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
        -x SOFTHCA_FABRIC "${mca[@]}" -n "$2" "${@:3}" </dev/null >"$work/out" 2>&1
}
hpcc_run() { # WAY RANKS
    local q=1 rows
    while [ $((q * q)) -lt "$2" ] || [ $(($2 % q)) -ne 0 ]; do q=$((q + 1)); done
    rm -rf "$work/hpcc" && mkdir "$work/hpcc"
    zcat -f /usr/share/doc/hpcc/examples/_hpccinf.txt |
        sed "s/^[0-9 ]* Ns\$/$side Ns/; s/^[0-9 ]* NBs\$/64 NBs/; s/^[0-9 ]* Ps\$/$(($2 / q)) Ps/; s/^[0-9 ]* Qs\$/$q Qs/" >"$work/hpcc/hpccinf.txt"
    rows=$(cd "$work/hpcc" && launch "$1" "$2" hpcc && awk -F= -v n="$2" -v w="$1" '
        $1 == "Success" { good = $2 == 1 }
        $1 == "PTRANS_time" { ptrans = $2 }
        $1 == "MPIFFT_time1" || $1 == "MPIFFT_time3" { fft += $2 }
        END { if (!good) exit 1; print "hpcc-PTRANS", n, w, ptrans; print "hpcc-MPIFFT-transposes", n, w, fft }' hpccoutf.txt) || return 1
    echo "$rows" >>"$file"
}
fftw_run() { # WAY RANKS
    # shellcheck disable=SC2086 # two numbers
    launch "$1" "$2" "$work/fft" $fft || return 1
    awk -v n="$2" -v w="$1" '$1 == "transform" { print "fftw-mpi", n, w, $2 } $1 == "alltoall" && $3 > 0 { print "fftw-mpi-alltoall", n, w, $2 }' \
        "$work/out" >>"$file"
}
first_of() { if [ "$1" = hpcc ]; then echo hpcc-PTRANS; else echo fftw-mpi; fi; } # of a run's rows
programs=()
! command -v hpcc >/dev/null || programs+=(hpcc)
if mpicc.openmpi -O2 -o "$work/fft" "$STRATA_SOURCE/bench/coll_fft.c" -lfftw3_mpi -lfftw3 -lm 2>"$work/out"; then
    programs+=(fftw)
else
    echo "coll_apps.sh: left out: FFTW-MPI: $(head -n 1 "$work/out")" >&2
fi
touch "$file" || exit 1
status=0
for ((round = 1; round <= rounds; round++)); do
    for n in $ranks; do
        for program in ${programs[@]+"${programs[@]}"}; do
            for way in ob1 tuned coll-strata direct pap_direct; do
                [ "$(grep -c "^$(first_of $program) $n $way " "$file")" -lt "$round" ] || continue
                [ -z "$until" ] || [ "$(date +%s)" -lt "${until%.*}" ] || exit $status
                echo "coll_apps.sh: round $round of $rounds, $program, $n ranks, $way" >&2
                if ! "${program}_run" "$way" "$n"; then
                    echo "coll_apps.sh: $program, $n ranks, $way failed: $(tail -n 4 "$work/out" | tr '\n' '|')" >&2
                    status=1
                fi
            done
        done
    done
done
exit $status
