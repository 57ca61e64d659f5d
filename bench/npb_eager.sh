#!/usr/bin/env bash
# The NAS parallel benchmarks that a user has, by send and receive and by eager RDMA in turn, on the devices that there are:
# npb_eager.sh FOLDER [RANKS]   FOLDER: with NPB-MPI's binaries, such as cg.A.x, built with Open MPI 4.1; ROUNDS=3, DETECT=auto
# Prints for each "NAME WAY SECONDS MOP/S", medians.
set -u
folder=${1-} ranks=${2:-4} rounds=${ROUNDS:-3}
if [ ! -d "$folder" ] || ! ls "$folder"/*.x >/dev/null 2>&1; then
    echo "usage: npb_eager.sh FOLDER [RANKS]: a folder with binaries of NPB-MPI, such as cg.A.x" >&2
    exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in "$folder"/*.x; do
    name=$(basename "$program" .x)
    for _ in $(seq "$rounds"); do
        for way in off on; do
            if ! strata-mpirun -n "$ranks" --mca pml_strata_btl openib,self --mca pml_strata_btl_openib_eager_rdma $way \
                --mca pml_strata_btl_openib_eager_rdma_detect "${DETECT:-auto}" "$program" >"$work/out" 2>"$work/err" </dev/null ||
                ! grep -q 'Verification *= *SUCCESSFUL' "$work/out"; then
                echo "npb_eager.sh: $name with $ranks ranks failed, eager RDMA $way:" >&2
                tail -n 3 "$work/out" "$work/err" >&2
                continue 3
            fi
            awk -v n="$name" -v w=$way '/Time in seconds/ { t = $NF } /Mop\/s total/ { m = $NF } END { print n, w, t, m }' "$work/out" >>"$work/all"
        done
    done
done
[ -s "$work/all" ] || exit 1
sort -k1,2 -k3,3g "$work/all" | awk '
    { key = $1 " " $2; n[key]++; time[key, n[key]] = $3; rate[key, n[key]] = $4 }
    END { for (k in n) { i = int((n[k] + 1) / 2); print k, time[k, i], rate[k, i] } }' | sort
