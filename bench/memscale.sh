#!/usr/bin/env bash
# Memory, start and latency as ranks grow, as a report: memscale.sh [--quick] [--guest] REPORT.md [FOLDER]. FOLDER (default: memscale)
# keeps the measurements and the figures; a run that was ended goes on there. Everything of the paper's Figures 3 to 6 and Tables 1 to 3
# that this machine holds: softhca with every preset, sm, tcp, and Open MPI and MPICH where they are.
#   --quick   few ranks, some minutes
#   --guest   before that, 2 to 32 ranks on Soft-RoCE in the guest, beside Open MPI's openib and MPICH: an hour
set -u
quick='' guest='' inside=''
while [[ ${1-} == --* ]]; do
    case $1 in
    --quick) quick=1 ;;
    --guest) guest=1 ;;
    --inside) inside=1 ;; # in the guest, by this script itself
    *) echo "memscale.sh: unknown option $1; see its first lines" >&2 && exit 2 ;;
    esac
    shift
done
report=${1:?memscale.sh [--quick] [--guest] REPORT.md [FOLDER]} folder=${2:-memscale}
command -v strata-memscale >/dev/null || { echo "memscale.sh: strata-memscale is not on the path: ./quickstart build" >&2; exit 2; }
mkdir -p "$folder" || exit 2
here=$(dirname "$(realpath "$0")")
status=0

measure() { # NUMBERS OPTIONS...: what the machine does not hold is refused, and named in the report
    echo "strata-memscale -n $*" >>"$folder/commands"
    strata-memscale -n "$@" -o "$folder" 2>&1 >"$folder/tables" | tee -a "$folder/log" >&2
}

# Open MPI's openib connects over InfiniBand only: a preload makes Soft-RoCE look so (bench/README.md).
measure_inside() {
    local numbers=2,4,8,16,32
    [ -z "$quick" ] || numbers=2,4
    export UCX_NET_DEVICES=rxe0:1 UCX_UD_VERBS_ETH_DGID_CHECK=n
    measure $numbers -c verbs:verbs -c verbs-per-peer:'verbs;btl_openib_receive_queues=P,8448,72,1,64:P,33024,7,1,6'
    LD_PRELOAD=$folder/rxe_as_ib.so measure $numbers -c 'openmpi:openmpi-verbs;btl_openib_ib_timeout=14'
    measure $numbers -c mpich-rc:mpich-rc-verbs -c mpich-ud:mpich-ud-verbs
}

measure_guest() {
    local in_guest
    in_guest=$(realpath "$folder")/guest
    mkdir -p "$in_guest" || exit 2
    "${CC:-gcc}" -O2 -Wall -Wextra -fPIC -shared -o "$in_guest/rxe_as_ib.so" "$here/rxe_as_ib.c" -libverbs -ldl || exit 1
    "$here/../tests/guest/run" --memory 6144 --timeout 14400 --out "$in_guest" bash "$here/memscale.sh" --inside ${quick:+--quick} \
        "$in_guest/none" "$in_guest" || status=1
}

if [ "$inside" ]; then
    : >"$folder/commands" && : >"$folder/log"
    measure_inside
    exit
fi
[ -z "$guest" ] || measure_guest
: >"$folder/commands"
: >"$folder/log"
if [ "$quick" ]; then
    measure 2,4,8 -c srq -c per-peer -c sm --peers
    srq=(srq --quick -o "$folder")
else
    measure 2,4,8,16,32,64,128,256,512 -c srq -c sm -c tcp
    measure 2,4,8,16,32,64,128 -c all
    measure 2,4,8,16,32,64 --peers
    srq=(srq -n 16 -r 5 -o "$folder")
fi
strata-memscale --model -n 2 -p hello -c srq -o "$folder" >"$folder/model.txt" 2>>"$folder/log" || status=1
echo "strata-memscale ${srq[*]}" >>"$folder/commands"
strata-memscale "${srq[@]}" >"$folder/srq.txt" 2>>"$folder/log" || status=1
python3 "$here/memscale_report.py" "$folder" >"$report.new" && mv "$report.new" "$report" || exit 1
echo "$report; figures: $(cd "$folder" && echo *.svg)"
exit "$status"
