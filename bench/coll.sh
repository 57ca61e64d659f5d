#!/bin/bash
# Collectives under process arrival patterns into docs/measured/coll.md, with figures in the build folder. Started by
# `make bench-coll`. usage: coll.sh [OPTION OF bench/coll.py]...
set -u
out=$STRATA_BUILD/bench/coll
mkdir -p "$out"
status=0
parts=()
part() { # NAME OPTION...
    local name=$1
    shift
    python3 -B "$STRATA_SOURCE/bench/coll.py" --state "$out/$name.json" --out "$out/$name.md" --figures "$out/figures" "$@" || status=1
    parts+=("$out/$name.md")
}
part alltoall-sm "$@"
if [ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ]; then
    part alltoall-softhca --transport softhca "$@"
    part alltoall-nodes --transport nodes --ranks 8,16 --rounds 3 "$@" # nodes of four
fi
for op in barrier bcast allreduce allgather; do
    part "$op-sm" --op "$op" --ranks 2,8 --mif 0,32 --late '' --systems "tuned/ob1,tuned/strata,strata/strata,default,basic,sm" "$@"
done
{
    printf '# Collectives under process arrival patterns\n\n'
    printf 'After Qian and Afsahi, "Process Arrival Pattern and Shared Memory Aware Alltoall on InfiniBand", section 5.1. A system with a\n'
    printf 'slash is Open MPI: its coll component over its pml; the others are forms of Strata. Written by `make bench-coll`.\n\n'
    cat "${parts[@]}"
} >"$STRATA_SOURCE/docs/measured/coll.md"
exit $status
