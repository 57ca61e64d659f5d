#!/usr/bin/env bash
# Shared receive queues beside receive queues per peer (paper, Table 2), on softhca, in turn: all-to-all and N-to-1 incast. The
# same with a shared queue of 16 buffers that may not grow, for the incast. Started by `make bench-srq`; ROUNDS turns, RANKS
# and CROWD ranks.
set -u
build=${STRATA_BUILD:?run make bench-srq}
rounds=${ROUNDS:-5} ranks=${RANKS:-16} crowd=${CROWD:-32}
work=$(mktemp -d "${TMPDIR:-/tmp}/strata-srq.XXXXXX")
trap 'rm -rf "$work"' EXIT
declare -A queues=(
    [peer]="P,8448,72,1,64:P,33024,7,1,6" # as many credits as the shared queues grant
    [shared]="" # the default
    [short]="S,8448,16,4,32:S,33024,16,1,6"
)

one() { # NAME QUEUES RANKS MODE BYTES ROUNDS BATCHES: "NAME MODE-RANKS BYTES FIRST MEDIAN"
    local given=()
    [ -z "$2" ] || given=(--mca btl_openib_receive_queues "$2")
    timeout -k 2 150 strata-run --softhca -n "$3" --mca btl openib,self ${given[@]+"${given[@]}"} \
        "$build/tests/programs/traffic" "${@:4}" >"$work/out" 2>"$work/err" </dev/null || {
        echo "bench-srq: $1 $4 $5 with $3 ranks failed:" >&2
        tail -n 3 "$work/err" >&2
        return
    }
    awk -v name="$1" -v n="$3" '{ print name, $1, n, $2, $3, $4 }' "$work/out" >>"$work/all"
}
turn() { # RANKS MODE BYTES ROUNDS BATCHES: each queue, the other way round every second time
    local order="peer shared short" name
    [ $((n % 2)) = 0 ] || order="short shared peer"
    for name in $order; do
        [ "$name $2" != "short alltoall" ] || continue
        one "$name" "${queues[$name]}" "$1" "$2" "$3" "$4" "$5"
    done
}
for n in $(seq "$rounds"); do
    for bytes in 8 1024 8000 32768 131072; do
        if [ "$bytes" -gt 8192 ]; then turn "$ranks" alltoall "$bytes" 5 49; else turn "$ranks" alltoall "$bytes" 20 199; fi
    done
    for bytes in 8 1024 8000 20000; do turn "$crowd" incast "$bytes" 50 49; done
done
printf 'medians of %s turns, microseconds; x: beside queues per peer\n' "$rounds"
printf '%-10s%6s%8s%12s%12s%7s%12s%7s  %s\n' test ranks bytes "per peer" shared x "16 deep" x "targets 1.1x, 16 deep 3x"
sort -k2,2 -k3,3n -k4,4n -k1,1 -k6,6g "$work/all" | awk '
    { k = $2 " " $3 " " $4; if (!(k in seen)) { seen[k]; order[++rows] = k }; v[k, $1, ++n[k, $1]] = $6 }
    function median(k, who, m) { m = n[k, who]; return m ? (v[k, who, int((m + 1) / 2)] + v[k, who, int(m / 2) + 1]) / 2 : 0 }
    END { for (i = 1; i <= rows; i++) {
        k = order[i]; split(k, f, " "); p = median(k, "peer"); s = median(k, "shared"); d = median(k, "short"); verdict = "met"
        if (!p || !s) { print k ": not measured"; continue }
        if (s / p > 1.1) verdict = "missed"
        printf "%-10s%6d%8d%12.0f%12.0f%7.2f", f[1], f[2], f[3], p, s, s / p
        if (d) { printf "%12.0f%7.2f", d, d / p; if (d / p > 3) verdict = verdict ", 16 deep: missed" } else printf "%12s%7s", "-", "-"
        print "  " verdict } }'
