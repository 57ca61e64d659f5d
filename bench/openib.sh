#!/usr/bin/env bash
# btl_openib beside Open MPI's openib, MPICH over UCX, ucx_perftest and perftest, in turn; its instructions; its memory.
# openib.sh [speed|work|instructions|memory|connect]... on softhca, `guest` in front for the same on Soft-RoCE. README.md says how to read it.
# shellcheck disable=SC2154 # what lib.sh sets
set -u
here=$(dirname "$(realpath "$0")")
build=${STRATA_BUILD:?run make bench-openib}
source=${STRATA_SOURCE:?run make bench-openib}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash UCX_WARN_UNUSED_ENV_VARS=n
export MPIR_CVAR_NOLOCAL=1 # else MPICH has shared memory for two ranks of one machine
if [ "${1-}" = guest ]; then
    shift
    shim=$build/bench/rxe_as_ib.so
    mkdir -p "$build/bench"
    "${CC:-gcc}" -O2 -Wall -Wextra -fPIC -shared -o "$shim" "$here/rxe_as_ib.c" -libverbs -ldl || exit 1
    exec "$source/tests/guest/run" --timeout "${BENCH_TIMEOUT:-900}" -x ROUNDS -x BENCH_GUEST=1 -x OMPI_ALLOW_RUN_AS_ROOT \
        -x OMPI_ALLOW_RUN_AS_ROOT_CONFIRM -x MPIR_CVAR_NOLOCAL bash "$0" "${@:-speed}"
fi

# shellcheck disable=SC1091,SC2154
. "$source/tests/softhca/lib.sh"
all_cpus=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= $NF; i++) printf "%s%d", n++ ? "," : "", i }')
cpus=$(cut -d, -f1,2 <<<"$all_cpus")
if [ -n "${BENCH_GUEST-}" ]; then
    rounds=${ROUNDS:-2} device=rxe0 where="Soft-RoCE in the guest" softhca=()
    preload='' mpi_preload=$build/bench/rxe_as_ib.so limit=120
    small=(--iters 1000) large=(--iters 10) few=(--iters 4) window=16
    export UCX_NET_DEVICES=rxe0:1 UCX_UD_VERBS_ETH_DGID_CHECK=n
    gid=(-x 1)
else
    rounds=${ROUNDS:-5} device=soft0 where=softhca softhca=(--softhca)
    mpi_preload=$preload limit=60
    small=() large=() few=() window=64
    export UCX_NET_DEVICES=soft0:1
    gid=()
fi
export UCX_TLS=rc_verbs,ud_verbs:aux,self
soft() { # as in lib.sh, where the server runs in the background: it and the client on a processor each
    local limit=$1 cpu=${cpus%,*}
    shift
    [ "$BASHPID" = $$ ] || cpu=${cpus#*,}
    timeout -k 2 "$limit" taskset -c "$cpu" env LD_PRELOAD="$preload" "$@" </dev/null
}

# ---- speed: lines "IMPLEMENTATION TEST BYTES VALUE TURN" into $work/speed

cpus_of() { if [ "$1" -gt 2 ]; then echo "$all_cpus"; else echo "$cpus"; fi; } # RANKS
launch() { # strata|openmpi|mpich RANKS PROGRAM ARGS...
    local who=$1 n=$2 on
    shift 2
    on=$(cpus_of "$n")
    case $who in
    strata) set -- strata-run ${softhca[@]+"${softhca[@]}"} -n "$n" --bind-to none --mca btl openib,self "$@" ;;
    openmpi)
        set -- mpirun.openmpi --oversubscribe --bind-to none -n "$n" -x LD_PRELOAD="$mpi_preload" --mca pml ob1 \
            --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0 \
            --mca btl_openib_ib_timeout 14 "$@"
        ;;
    mpich) set -- env LD_PRELOAD="$preload" mpiexec.mpich -n "$n" "$@" ;;
    esac
    timeout -k 5 "$limit" taskset -c "$on" "$@" </dev/null >"$work/out" 2>"$work/err"
}
job() { # strata|openmpi|mpich RANKS TEST ARGS...: the same loops over each
    local who=$1 n=$2 test=$3 status=0 program=strata-mpi-twin.$1
    shift 3
    if [ "$who" = strata ]; then program=strata-perf; fi
    set -- "$test" --json --batches 3 --cpus "$(cpus_of "$n")" "$@"
    if [[ $* = *--one-buffer* ]]; then test=one_buffer; fi
    launch "$who" "$n" "$program" "$@" || status=$?
    if [ "$status" -ne 0 ]; then
        echo "bench-openib: $who $test failed with status $status" >&2
        tail -n 5 "$work/err" >&2
    fi
    awk -v who="$who" -v test="$test" -v turn="$turn" '{ gsub(/,/, "") } $1 == "\"bytes\":" { bytes = $2 }
        $1 == "\"median\":" { print who, test, bytes, $2, turn
            if (test != "latency" && bytes == 8) print who, test "_rate", 8, $2 / 8e-3, turn }' \
        "$work/out" >>"$work/speed"
}
others() { # the programs of UCX and perftest, which take one size each
    local size n
    for size in 8 4096 65536 1048576; do
        n=$((size > 8192 ? 40 : 1000))
        if command -v ucx_perftest >/dev/null; then
            pair 60 '^Final:' 1 ucx_perftest -p @ -t tag_lat -s "$size" -n "$n" -w 20 >&2
            awk -v s="$size" -v turn="$turn" '/^Final:/ { print "ucx latency", s, $5, turn }' "$work/client" >>"$work/speed"
            pair 60 '^Final:' 1 ucx_perftest -p @ -t tag_bw -s "$size" -n "$((n * 4))" -w 20 >&2
            awk -v s="$size" -v turn="$turn" '/^Final:/ { print "ucx one_buffer", s, $7 * 1.048576, turn
                if (s == 8) print "ucx bw_rate", s, $9 / 1000, turn }' "$work/client" >>"$work/speed"
        fi
        command -v ib_send_lat >/dev/null || continue
        if [ "$size" = 8 ]; then
            pair 60 '^ *8 +' 1 ib_send_lat -F -p @ -d $device ${gid[@]+"${gid[@]}"} -s 8 -n 1000 >&2
            awk -v turn="$turn" '$1 == 8 { print "verbs latency 8", $6, turn }' "$work/client" >>"$work/speed"
        elif [ "$size" -ge 65536 ]; then
            pair 60 "^ *$size +" 1 ib_write_bw -F -p @ -d $device ${gid[@]+"${gid[@]}"} -s "$size" -n 200 >&2
            awk -v s="$size" -v turn="$turn" '$1 == s { print "verbs one_buffer", s, $4 * 1.048576, turn }' "$work/client" >>"$work/speed"
        fi
    done
}

# A ratio is how many times as dear Strata is: below 1 it is better, of times and of bandwidths. Each is the median of the
# turns' own ratios: the two processors may be near each other in some turns and far apart in others. Where they change in the
# middle of turns that says little, and `best`, the ratio of the best turn of each, says more.
table() { # test title
    printf '\n%s, %s (medians of %s turns; x: Strata beside it, by turn, below 1 is better; best: of the best turns)\n' "$2" "$where" "$rounds"
    printf '%8s%11s%11s%7s%6s%11s%7s%6s%11s%7s%6s%11s%7s%6s  %s\n' bytes Strata "Open MPI" x best MPICH x best UCX x best verbs x best \
        "target: <1x <1x <=1.1x <=1.2x"
    grep " $1 " "$work/speed" | sort -k3,3n -k5,5n | awk -v test="$1" '
        { v[$1, $3, $5] = $4; if ($5 > turns) turns = $5; if (!($3 in seen)) { seen[$3]; size[++sizes] = $3 } }
        function median(a, n,   i, j, x) { # sorts a
            for (i = 2; i <= n; i++) { x = a[i]; for (j = i; j > 1 && a[j - 1] > x; j--) a[j] = a[j - 1]; a[j] = x }
            return n ? (a[int((n + 1) / 2)] + a[int(n / 2) + 1]) / 2 : 0
        }
        function value(who,   a, t, n) { for (t = 1; t <= turns; t++) if ((who, s, t) in v) a[++n] = v[who, s, t]; return median(a, n) }
        function ratio(who,   a, t, n, m, o) {
            for (t = 1; t <= turns; t++) {
                o = v[who, s, t]; m = v["strata", s, t]
                if (o && m) a[++n] = test == "latency" ? m / o : o / m
            }
            return median(a, n)
        }
        function best(who,   t, b) {
            for (t = 1; t <= turns; t++)
                if ((who, s, t) in v && (!b || (test == "latency" ? v[who, s, t] < b : v[who, s, t] > b))) b = v[who, s, t]
            return b
        }
        function cell(who, name, most,   x) {
            if (!(x = ratio(who))) { printf "%11s%7s%6s", "-", "-", "-"; return }
            printf "%11.2f%7.2f%6.2f", value(who), x, test == "latency" ? best("strata") / best(who) : best(who) / best("strata")
            if (most == 1 ? x >= 1 : x > most) missed = missed (missed ? ", " : "missed: ") name
        }
        END { for (i = 1; i <= sizes; i++) {
            s = size[i]; mine = value("strata"); missed = ""
            printf "%8d%11.2f", s, mine
            cell("openmpi", "Open MPI", 1); cell("mpich", "MPICH", 1); cell("ucx", "UCX", 1.1); cell("verbs", "verbs", 1.2)
            print "  " (mine ? missed ? missed : "met" : "not measured") } }'
}
speed() {
    local who size turn
    : >"$work/speed"
    for turn in $(seq "$rounds"); do
        for who in strata openmpi mpich; do
            job $who 2 latency --sizes 8:8k ${small[@]+"${small[@]}"}
            job $who 2 latency --sizes 16k:1m ${large[@]+"${large[@]}"}
            job $who 2 bw --sizes 8:8k --window $window ${few[@]+"${few[@]}"}
            job $who 2 bw --sizes 16k:1m --window $window ${few[@]+"${few[@]}"}
            if [[ $all_cpus = *,*,*,* ]]; then job $who 4 mbw --sizes 8:8 --window $window; fi
        done
        for size in 8 4k 64k 1m; do # as the programs of UCX and perftest do
            job strata 2 bw --one-buffer --sizes $size --window $window ${few[@]+"${few[@]}"}
        done
        others
    done
    table latency "Half a round trip, us"
    table bw "Bandwidth, MB/s"
    table one_buffer "Bandwidth from one buffer, MB/s"
    table bw_rate "Thousands of messages a second"
    if grep -q " mbw " "$work/speed"; then table mbw_rate "Thousands of messages a second, two pairs on four processors"; fi
    cp "$work/speed" "${BENCH_RAW:-/dev/null}"
}

# shellcheck disable=SC1091
. "$here/openib_cost.sh"
# shellcheck disable=SC1091
. "$here/openib_connect.sh"
if [ $# = 0 ]; then set -- speed work instructions memory connect; fi
for section in "$@"; do
    case $section in
    speed | work | instructions | memory | connect) "$section" ;;
    *) echo "usage: openib.sh [guest] [speed|work|instructions|memory|connect]..." >&2 && exit 2 ;;
    esac
done
if [ "$n_failed" != 0 ]; then echo "bench-openib: $n_failed runs of other programs failed" >&2; fi
