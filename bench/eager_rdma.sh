#!/usr/bin/env bash
# Eager RDMA beside send and receive: the comparisons of the paper, as raw figures, and the page made of them. Each figure is the
# median of its rounds; within a round the ways take turns.
# eager_rdma.sh [--quick] [--rounds N] [--minutes N] [--again] [--raw FILE] [--page FOLDER] [guest] [device|pairs|overhead|collectives|polling|applications]...
#   --quick         one round of few sizes; the page goes to the build folder
#   --minutes N     begins no part after so long; the page has what was measured, and the next run goes on from there
#   --again         begins anew; else what the raw file has from a run that was ended is not measured again
#   --page FOLDER   where eager-rdma.md and its figures go (docs/measured)
#   guest           on Soft-RoCE in the guest: device, pairs and overhead, added to the same raw file
# shellcheck disable=SC2154 # what lib.sh sets
set -u -o pipefail
build=${STRATA_BUILD:?run make bench-eager-rdma}
source=${STRATA_SOURCE:?run make bench-eager-rdma}
rounds=5 minutes='' quick='' again='' raw=$build/bench/eager_rdma.raw page='' guest=''
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes rounds=1 ;;
    --rounds | --minutes | --raw | --page)
        [ $# -gt 1 ] || { echo "eager_rdma.sh: $1 wants a value" >&2 && exit 2; }
        declare "${1#--}=$2"
        shift
        ;;
    --again) again=yes ;;
    guest) guest=yes ;;
    device | pairs | overhead | collectives | polling | applications) break ;;
    *) echo "eager_rdma.sh: unknown argument $1; see its first lines" >&2 && exit 2 ;;
    esac
    shift
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "eager_rdma.sh: --rounds: $rounds is not a number above 0" >&2 && exit 2; }
[[ ${minutes:-1} =~ ^[1-9][0-9]*$ ]] || { echo "eager_rdma.sh: --minutes: $minutes is not a number above 0" >&2 && exit 2; }
if [ -z "$page" ]; then
    page=$source/docs/measured
    [ -z "$quick" ] || page=$build/bench
fi
if [ -n "$quick" ] && [ "$raw" = "$build/bench/eager_rdma.raw" ]; then raw=$build/bench/eager_rdma.quick.raw; fi
# In the guest the tree cannot be written: lines of the raw file come on its output.
if [ -n "$guest" ]; then
    [ $# -gt 0 ] || set -- device pairs overhead
    out=$(mktemp)
    "$source/tests/guest/run" --timeout "${BENCH_TIMEOUT:-1800}" -x BENCH_GUEST=1 bash "$0" ${quick:+--quick} --rounds "$rounds" --again \
        --raw /tmp/eager_rdma.raw "$@" | tee "$out" || { echo "eager_rdma.sh: the guest has failed" >&2 && exit 1; }
    sed -n 's/^raw //p' "$out" >>"$raw"
    rm -f "$out"
    exec python3 -B "$source/bench/eager_rdma_page.py" "$raw" "$page" ${quick:+--quick}
fi
[ $# -gt 0 ] || set -- device pairs overhead collectives polling applications

if [ -n "${BENCH_GUEST-}" ]; then
    work=$(mktemp -d) modes=rxe softhca=() preload=''
    trap 'rm -rf "$work"' EXIT
else
    # shellcheck disable=SC1091
    . "$source/tests/softhca/lib.sh"
    modes="short kernel" softhca=(--softhca)
fi
ways="off flag seal imm auto"
small=8:8k large=16k:1m device_sizes=(8 64 256 1024 2048 4096) overhead_sizes=(8 64 256 1024 2048 4096)
ranks="2 3 4 5 6 7 8" coll_sizes=(8 64 512 2048 4096) peers=(1 2 4 8 16 32 64 128 255) coll_rounds=51 orders="sequential circular prioritised"
if [ -n "$quick" ]; then
    small=8:64 large=16k:32k device_sizes=(8 1024) overhead_sizes=(8 1024) ranks="2 4" coll_sizes=(8) peers=(1 16 64) coll_rounds=5
fi
cpus=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | awk -F- '{ for (i = $1; i <= $NF; i++) printf "%s%d", n++ ? "," : "", i }' | cut -d, -f1,2)
n_lost=0 n_late=0 limit=300 # seconds of a program: a safety net
mkdir -p "$(dirname "$raw")"
[ -z "$again" ] || rm -f "$raw"
touch "$raw" || exit 1
[ -n "${BENCH_GUEST-}" ] || echo "load $(cut -d' ' -f1 /proc/loadavg)" >>"$raw"

mode() { # NAME: of softhca; rxe has one
    unset SOFTHCA_SHORT
    [ "$1" != kernel ] || export SOFTHCA_SHORT=0
}
# A part that the raw file has whole is not measured again: part NAME MODE WAY ROUND COMMAND..., whose output is "TEST X VALUE".
part() {
    local key="done $1 $2 $3 $4"
    if grep -qx "$key" "$raw"; then return; fi
    if [ -n "$minutes" ] && [ $SECONDS -ge $((minutes * 60)) ]; then n_late=$((n_late + 1)) && return; fi
    echo "bench-eager-rdma: $1, $2, $3, round $4 of $rounds, after $SECONDS s" >&2
    if ! "${@:5}" >"$work/part" 2>"$work/err" </dev/null; then
        echo "bench-eager-rdma: $1 failed:" >&2
        tail -q -n 5 "$work/err" "$work/part" >&2 # a reason to skip is on the output
        n_lost=$((n_lost + 1))
        return
    fi
    awk -v m="$2" -v w="$3" 'NF == 3 { print m, w, $0 }' "$work/part" >>"$raw"
    echo "$key" >>"$raw"
}
settings() { # WAY: as arguments of strata-run, in $set
    case $1 in
    off | auto) set=(--mca btl_openib_eager_rdma "$1") ;;
    *) set=(--mca btl_openib_eager_rdma on --mca btl_openib_eager_rdma_detect "$1") ;;
    esac
}
job() { # RANKS PROGRAM ARGS...: with $set
    timeout -k 5 $limit strata-run ${softhca[@]+"${softhca[@]}"} -n "$1" --mca btl openib,self "${set[@]}" "${@:2}"
}
perf() { # TEST ARGS...: as "TEST BYTES MEDIAN"
    job 2 strata-perf "$1" --json --batches 5 --cpus "$cpus" "${@:2}" | awk -v test="$1" '{ gsub(/,/, "") }
        $1 == "\"bytes\":" { bytes = $2 } $1 == "\"median\":" { print test, bytes, $2 }'
}
# By the number of peers. off; few: rings with default parameters, for some of the peers; quiet: a ring for each; sequential, circular,
# prioritised: likewise, all of them in every round, in this order.
contexts() { # WAY PEERS...
    local setting=(eager_rdma=on eager_rdma_detect=flag) each=(eager_rdma_peers=256 eager_rdma_after=1)
    case $1 in
    off) setting=(eager_rdma=off) ;;
    few) ;;
    quiet) setting+=("${each[@]}") ;;
    *) setting+=("${each[@]}" eager_rdma_lively=1024 eager_rdma_order="$1") ;;
    esac
    timeout -k 5 $limit "$build/libtool" --quiet --mode=execute env LD_PRELOAD="${preload-}" STRATA_MCA_btl=openib,self \
        "${setting[@]/#/STRATA_MCA_btl_openib_}" "$build/bench/eager_polling" 1 "${@:2}"
}
device() {
    if [ ! -x "$build/bench/eager_device" ]; then echo "bench-eager-rdma: no libibverbs: the device is not measured" >&2 && return; fi
    part device "$1" raw "$2" timeout -k 5 $limit env LD_PRELOAD="${preload-}" "$build/bench/eager_device" 1 "${device_sizes[@]}"
}
pairs_once() {
    perf latency --sizes $small && perf latency --sizes $large && perf bw --window 100 --sizes $small && perf bw --window 100 --sizes $large
}
collectives_once() {
    local n
    for n in $ranks; do job "$n" "$build/bench/eager_rdma" collectives $coll_rounds "${coll_sizes[@]}" || return 1; done
}
each_way() { # PART MODE ROUND COMMAND...
    local way
    for way in $ways; do
        settings "$way"
        part "$1" "$2" "$way" "$3" "${@:4}"
    done
}
pairs() { each_way pairs "$1" "$2" pairs_once; }
overhead() { each_way overhead "$1" "$2" job 2 "$build/bench/eager_rdma" overhead 5 "${overhead_sizes[@]}"; }
collectives() { each_way collectives "$1" "$2" collectives_once; }
polling() {
    local way
    if [ "$1" = kernel ]; then return; fi # nothing is written
    for way in off few quiet $orders; do
        part polling "$1" $way "$2" contexts $way "${peers[@]}"
    done
}
# How many of an application's messages go by rings, and how many peers a rank hears: three rounds at most.
applications() {
    local way
    if [ "$2" -gt 3 ]; then return; fi
    for way in off flag auto; do
        part applications "$1" $way "$2" timeout -k 5 1200 bash "$source/bench/eager_rdma_applications.sh" $way ${quick:+quick}
    done
}

for round in $(seq "$rounds"); do
    for section in "$@"; do
        declare -F "$section" >/dev/null || { echo "eager_rdma.sh: unknown section $section" >&2 && exit 2; }
        for name in $modes; do
            mode "$name"
            "$section" "$name" "$round"
        done
    done
done
[ "$n_late" = 0 ] || echo "bench-eager-rdma: $n_late parts were not begun within $minutes minutes; without --again the next run goes on with these" >&2
[ "$n_lost" = 0 ] || echo "bench-eager-rdma: $n_lost parts failed; the page lacks them" >&2
if [ -n "${BENCH_GUEST-}" ]; then
    sed 's/^/raw /' "$raw"
    exit
fi
exec python3 -B "$source/bench/eager_rdma_page.py" "$raw" "$page" ${quick:+--quick}
