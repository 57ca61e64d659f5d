#!/bin/bash
# What the memory hooks cost 8 threads that allocate and free: processor time for a pair of malloc and free, with the
# hooks and without in turns (ABBA), medians; the ratio is the median of the turns' ratios. ROUNDS=21; PAIRS=100000 for
# each thread.
set -eu
rounds=${ROUNDS:-21} pairs=${PAIRS:-100000} threads=8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

median() { sort -n "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

printf '%-44s %10s %10s %8s\n' "$threads threads, ns for malloc and free" without with ratio
for large in 1000000000 1000 10; do
    : >"$work/on"
    : >"$work/off"
    : >"$work/ratio"
    case $large in
    10) n=$((pairs / 20)) what="one in 10 is mapped and unmapped" ;;
    1000) n=$pairs what="one in 1000 is mapped and unmapped" ;;
    *) n=$((pairs * 4)) what="none is mapped" ;;
    esac
    for ((i = 0; i < rounds; i++)); do
        if ((i % 2)); then order="on off"; else order="off on"; fi
        for mode in $order; do
            "$STRATA_BUILD/bench/memory" "$mode" "$threads" "$n" "$large" >"$work/last-$mode"
            cat "$work/last-$mode" >>"$work/$mode"
        done
        paste "$work/last-on" "$work/last-off" | awk '{print $1 / $2}' >>"$work/ratio"
    done
    printf '%-44s %10.1f %10.1f %8.3f\n' "$what" "$(median "$work/off")" "$(median "$work/on")" "$(median "$work/ratio")"
done
