#!/bin/bash
# Two threads of a rank that send to different peers: Strata under Open MPI, Open MPI's ob1 and its pml of UCX, MPICH, in turn.
# Started by `make bench-threads`; ROUNDS turns, BYTES of a message. OLD: the build folder of another Strata, one column more.
set -u
rounds=${ROUNDS:-5} bytes=${BYTES:-8}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plugin_of() { # BUILD-FOLDER FOLDER: of which the plugin is the only file
    mkdir "$2" && ln -s "$1/embed/openmpi/.libs/mca_pml_strata.so" "$2" && [ -f "$2/mca_pml_strata.so" ]
}
plugin_of "$STRATA_BUILD" "$work/new" || { echo "the plugin for Open MPI was not built" >&2; exit 2; }
kinds=(strata ob1 ucx)
[ -z "${OLD-}" ] || { plugin_of "$OLD" "$work/old" && kinds+=(old); } || { echo "OLD=$OLD has no plugin" >&2; exit 2; }
mpicc.openmpi -O2 -pthread -o "$work/openmpi" "$STRATA_SOURCE/bench/threads.c" || exit 2
! command -v mpicc.mpich >/dev/null || { mpicc.mpich -O2 -Wno-stringop-overflow -pthread -o "$work/mpich" "$STRATA_SOURCE/bench/threads.c" && kinds+=(mpich); }

under() { # KIND
    local openmpi=(mpirun.openmpi --oversubscribe --bind-to none -n 3)
    case $1 in
    strata) "${openmpi[@]}" --mca mca_base_component_path "$work/new:SYSTEM_DEFAULT" --mca pml strata "$work/openmpi" 6 "$bytes" ;;
    old) LD_LIBRARY_PATH=$OLD/.libs STRATA_MCA_mca_component_path=$OLD/plugins "${openmpi[@]}" --mca mca_base_component_path "$work/old:SYSTEM_DEFAULT" --mca pml strata "$work/openmpi" 6 "$bytes" ;;
    ob1) "${openmpi[@]}" --mca pml ob1 --mca btl vader,self "$work/openmpi" 6 "$bytes" ;;
    ucx) "${openmpi[@]}" --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=sm,self "$work/openmpi" 6 "$bytes" ;;
    mpich) mpiexec.mpich -n 3 "$work/mpich" 6 "$bytes" ;;
    esac </dev/null 2>"$work/err.$1"
}
for _ in $(seq "$rounds"); do
    for kind in "${kinds[@]}"; do under "$kind" | sed "s/^/$kind /" >>"$work/figures"; done
done
printf 'Two threads, each to a peer of its own, %s bytes: millions of messages a second (%s turns, %s processors)\n' \
    "$bytes" "$rounds" "$(nproc)"
for kind in "${kinds[@]}"; do
    sed -n "s/^$kind //p" "$work/figures" | sort -g | awk -v kind="$kind" '
        { v[NR] = $1 }
        END { if (NR) printf "%-8s median %8.3f  lowest %8.3f  highest %8.3f  of %d\n", kind, v[int((NR + 1) / 2)], v[1], v[NR], NR
              else printf "%-8s not measured\n", kind }'
    grep -q "^$kind " "$work/figures" || sed -n '1,3s/^/    /p' "$work/err.$kind"
done
