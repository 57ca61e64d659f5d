#!/bin/bash
# Strata under Open MPI against ob1 and vader, in turn: messages (strata-perf compare --embed), collectives with 8 and 16 ranks
# on two processors, HPCC's own figures. Started by `make bench-embed`; ROUNDS turns. EMBED="messages collectives hpcc": parts.
set -u
rounds=${ROUNDS:-5}
read -ra parts <<<"${EMBED:-messages collectives hpcc}"
for part in "${parts[@]}"; do
    case $part in
    messages | collectives | hpcc) ;;
    *)
        echo "bench-embed: there is no part $part; there are messages, collectives and hpcc" >&2
        exit 2
        ;;
    esac
done
wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
built=$STRATA_BUILD/embed/openmpi/.libs/mca_pml_strata.so
[ -f "$built" ] || { echo "the plugin for Open MPI was not built" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Only the plugin: Open MPI takes every file of the folder that begins with mca_ for one of its own.
plugin=$work/plugin
mkdir "$plugin"
ln -s "$built" "$plugin"

under() { # strata|ob1 MPIRUN'S ARGUMENTS...
    local pml=$1
    shift
    if [ "$pml" = strata ]; then
        mpirun.openmpi --mca mca_base_component_path "$plugin:SYSTEM_DEFAULT" --mca pml strata "$@"
    else
        mpirun.openmpi --mca pml ob1 --mca btl vader,self "$@"
    fi
}

# Medians of lines "NAME VALUE", per pml, side by side. Of bandwidths more is better. "met": no worse than ob1 by more than a
# margin.
table() { # title, the file of "PML NAME VALUE", the margin
    echo
    echo "$1 (medians of $rounds turns)"
    printf '%-38s%14s%14s%9s\n' "" Strata ob1 ratio
    sort -k1,2 -k3,3g "$2" | awk -v margin="$3" '
        { key = $1 SUBSEP $2; n[key]++; v[key, n[key]] = $3; names[$2] }
        function median(key) { return v[key, int((n[key] + 1) / 2)] }
        END { for (name in names) {
                  a = median("strata" SUBSEP name); b = median("ob1" SUBSEP name); r = b > 0 ? a / b : 0
                  met = name ~ /Bandwidth/ ? r >= 1 - margin : r <= 1 + margin
                  verdict = a == 0 || b == 0 ? "not measured" : met ? "met" : "missed"
                  printf "%-38s%14.3f%14.3f%8.2fx  %s\n", name, a, b, r, verdict } }' | sort
}

! wanted messages || strata-perf compare --embed --rounds "$rounds"

cpus=$(taskset -cp $$ | sed 's/.*: //; s/-/,/' | cut -d, -f1,2)
if wanted collectives; then
    mpicc.openmpi -O2 -o "$work/collectives" "$STRATA_SOURCE/bench/collectives.c" || exit 1
    for ranks in 8 16; do
        for _ in $(seq "$rounds"); do
            for pml in strata ob1; do
                under "$pml" --bind-to none --oversubscribe -n "$ranks" taskset -c "$cpus" "$work/collectives" 5 100 |
                    awk -v p="$pml" '{ print p, $1 "_" $2 "_bytes_us", $3 }' >>"$work/coll$ranks"
            done
        done
        table "Collectives, $ranks ranks on processors $cpus" "$work/coll$ranks" 0
    done
fi

# One run of HPCC: lines "NAME VALUE", the whole time among them. N is the side of its matrices.
hpcc_run() { # strata|ob1 N P Q MPIRUN'S ARGUMENTS...
    local pml=$1 side=$2 p=$3 q=$4 begin
    shift 4
    rm -rf "$work/hpcc" && mkdir "$work/hpcc" && cd "$work/hpcc" || return 1
    zcat -f /usr/share/doc/hpcc/examples/_hpccinf.txt |
        sed "s/^[0-9 ]* Ns\$/$side Ns/; s/^[0-9 ]* NBs\$/64 NBs/; s/^[0-9 ]* Ps\$/$p Ps/; s/^[0-9 ]* Qs\$/$q Qs/" >hpccinf.txt
    begin=$(date +%s.%N)
    if ! { under "$pml" "$@" hpcc >out 2>&1 && grep -q '^Success=1$' hpccoutf.txt; }; then
        echo "hpcc failed under $pml" >&2
        return 1
    fi
    echo "$(date +%s.%N) $begin" | awk -v p="$pml" '{ print p, "total_time_s", $1 - $2 }'
    awk -F= -v p="$pml" '/^(AvgPingPongLatency|AvgPingPongBandwidth|NaturallyOrderedRing|RandomlyOrderedRing)/ \
        { print p, $1, $2 }' hpccoutf.txt
}

if wanted hpcc && command -v hpcc >/dev/null; then
    # The latencies of four ranks have modes, by where the ranks happen to lie on a virtual machine: under both PMLs twice or
    # three times as long in one as in the other. A run takes a second, so many turns are affordable, and needed.
    many=$((rounds * 8))
    for _ in $(seq "$many"); do
        for pml in strata ob1; do
            (hpcc_run "$pml" 800 2 2 -n 4) >>"$work/hpcc4"
        done
    done
    for _ in $(seq "$rounds"); do
        for pml in strata ob1; do
            (hpcc_run "$pml" 1600 2 4 --bind-to none --oversubscribe -n 8 taskset -c "$cpus") >>"$work/hpcc8"
        done
    done
    # The same run differs by up to five in a hundred from turn to turn.
    rounds=$many table "HPCC, 4 ranks" "$work/hpcc4" 0.05
    grep total_time "$work/hpcc8" >"$work/hpcc8.time"
    table "HPCC, 8 ranks on processors $cpus" "$work/hpcc8.time" 0.05
fi
