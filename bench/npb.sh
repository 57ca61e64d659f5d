#!/usr/bin/env bash
# The paper's Table 2 with programs of others, on softhca, through Open MPI with Strata as its messaging layer: all NAS Parallel
# Benchmarks in BINDIR (names as NPB 3.4 gives them: is.S.x; or NPB 2 and 3.3: is.S.8, run with 8 ranks), built by mpicc.openmpi and
# mpif90.openmpi, and hpcc where it is installed. `npb.sh [BINDIR]`; RANKS=8, ROUNDS=1, COUNTS="16 4096". Seconds, medians.
# Table 3 is the same with other collectives: COLLECTIVES="tuned strata" are Open MPI's and Strata's, rows of the latter end in +strata.
set -u
ranks=${RANKS:-8} rounds=${ROUNDS:-1} counts=${COUNTS:-16 64 256 1024 4096} collectives=${COLLECTIVES:-tuned strata}
work=$(mktemp -d "${TMPDIR:-/tmp}/strata-npb.XXXXXX")
trap 'rm -rf "$work"' EXIT
command -v strata-mpirun >/dev/null || { echo "npb.sh: strata-mpirun is not on the path: ./quickstart build" >&2; exit 2; }
preload=$(LD_PRELOAD='' strata-run --softhca -n 1 printenv LD_PRELOAD) || exit 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash

queues=("no_SRQ P,8448,72,1,64:P,33024,7,1,6")
for n in $counts; do
    low=$((n / 16 > 7 ? n / 16 : 7))
    queues+=("SRQ_$n S,8448,$n,4,4096:S,33024,$low,1,512" "SRQ_FC_$n S,8448,$n,4,64:S,33024,$low,1,6")
done

launch() { # RANKS QUEUES PROGRAM
    SOFTHCA_FABRIC=npb-$$ timeout -k 5 "${LIMIT:-600}" strata-mpirun --oversubscribe --bind-to none -n "$1" -x LD_PRELOAD="$preload" \
        --mca pml_strata_btl openib,self --mca pml_strata_btl_openib_receive_queues "$2" ${others[@]+"${others[@]}"} "${@:3}" </dev/null >"$work/out" 2>&1
}
put() { printf '%s%s %s %s\n' "$1" "$suffix" "$2" "$3" >>"$work/all"; } # BENCHMARK QUEUES SECONDS|failed

one_npb() { # NAME QUEUES PROGRAM
    local base n=$ranks
    base=$(basename "$3")
    case $base in *.[0-9]*) n=${base##*.} ;; esac
    if launch "$n" "$2" "$3" && grep -qi 'verification *= *successful' "$work/out"; then
        put "${base%.*}/$n" "$1" "$(awk '/Time in seconds/ { print $NF }' "$work/out")"
    else
        put "${base%.*}/$n" "$1" failed
        tail -n 2 "$work/out" >&2
    fi
}
# FFT and PTRANS of a small problem: hpcc reads its input from the folder where it runs.
one_hpcc() { # NAME QUEUES
    local q=1
    while [ $((q * q)) -lt "$ranks" ]; do q=$((q + 1)); done
    while [ $((ranks % q)) -ne 0 ]; do q=$((q + 1)); done
    rm -rf "$work/hpcc" && mkdir "$work/hpcc"
    sed -e "s/@P/$((ranks / q))/; s/@Q/$q/" >"$work/hpcc/hpccinf.txt" <<'END'
HPLinpack benchmark input file
none
HPL.out output file name
8 device out
1 number of problems
1000 N
1 number of NBs
80 NB
0 PMAP
1 number of grids
@P P
@Q Q
16.0 threshold
1 # of panel fact
2 PFACT
1 # of recursive stopping criterium
4 NBMIN
1 # of panels in recursion
2 NDIV
1 # of recursive panel fact
1 RFACT
1 # of broadcast
1 BCAST
1 # of lookahead depth
1 DEPTH
2 SWAP
64 swapping threshold
0 L1
0 U
1 Equilibration
8 memory alignment in double
##### PTRANS #####
0 number of additional problem sizes for PTRANS
1000 N
0 number of additional blocking sizes for PTRANS
40 NB
END
    if (cd "$work/hpcc" && launch "$ranks" "$2" hpcc) && [ -s "$work/hpcc/hpccoutf.txt" ]; then
        awk -v n="$1" -v s="$suffix" -F= '$1 == "PTRANS_time" { print "hpcc-PTRANS" s, n, $2 }
            $1 == "MPIFFT_time1" || $1 == "MPIFFT_time3" { t += $2 }
            END { print "hpcc-MPIFFT-transposes" s, n, t }' "$work/hpcc/hpccoutf.txt" >>"$work/all"
    else
        put hpcc "$1" failed
        tail -n 2 "$work/out" >&2
    fi
}

for which in $collectives; do
    case $which in
    tuned | strata) ;;
    *) echo "npb.sh: COLLECTIVES are tuned and strata, not $which" >&2 && exit 2 ;;
    esac
done
all_queues() { # [BINDIR]
    local queue program
    for queue in "${queues[@]}"; do
        if [ $# -gt 0 ]; then
            for program in "$1"/*.[SWABCD].*; do [ ! -x "$program" ] || one_npb "${queue%% *}" "${queue#* }" "$program"; done
        fi
        ! command -v hpcc >/dev/null || one_hpcc "${queue%% *}" "${queue#* }"
    done
}
for ((round = 0; round < rounds; round++)); do
    for which in $collectives; do
        others=() suffix=''
        [ "$which" = tuned ] || { others=(--mca coll_strata_priority 40 --mca coll_strata_operations all) && suffix=+strata; }
        all_queues "$@"
    done
done
[ -s "$work/all" ] || { echo "npb.sh: no benchmark in ${1-no folder}, and no hpcc (Debian: hpcc)" >&2; exit 1; }
sort -k1,1 -k2,2 -k3,3g "$work/all" | awk '
    {
        key = $1 " " $2
        if (!(key in count)) order[++rows] = key
        value[key, ++count[key]] = $3
        if ($3 == "failed") bad[key] = 1
    }
    function median(key, m) {
        m = count[key]
        return m && !(key in bad) ? (value[key, int((m + 1) / 2)] + value[key, int(m / 2) + 1]) / 2 : 0
    }
    END {
        printf "%-29s %-14s %12s %7s\n", "benchmark", "queues", "seconds", "x"
        for (i = 1; i <= rows; i++) {
            split(order[i], word, " ")
            if (order[i] in bad) {
                failed = 1
                printf "%-29s %-14s %12s\n", word[1], word[2], "failed"
                continue
            }
            base = median(word[1] " no_SRQ")
            printf "%-29s %-14s %12.4f %7s\n", word[1], word[2], median(order[i]), (base > 0 ? sprintf("%.2f", median(order[i]) / base) : "-")
        }
        exit failed
    }'
