#!/usr/bin/env bash
# Memory, start and latency as ranks grow, as a report: memscale.sh [--quick] REPORT.md [FOLDER]. FOLDER (default: memscale) keeps the
# measurements and the figures; a run that was ended goes on there. Everything of the paper's Figures 3 to 6 and Tables 1 to 3 that this
# machine holds: softhca with every preset, sm, tcp, and Open MPI and MPICH where they are. --quick: few ranks, some minutes.
set -u
quick=
[ "${1-}" != --quick ] || { quick=1 && shift; }
report=${1:?memscale.sh [--quick] REPORT.md [FOLDER]} folder=${2:-memscale}
command -v strata-memscale >/dev/null || { echo "memscale.sh: strata-memscale is not on the path: ./quickstart build" >&2; exit 2; }
mkdir -p "$folder" || exit 2
here=$(dirname "$(realpath "$0")")
status=0

measure() { # NUMBERS OPTIONS...: what the machine does not hold is refused, and named in the report
    echo "strata-memscale -n $*" >>"$folder/commands"
    strata-memscale -n "$@" -o "$folder" 2>&1 >"$folder/tables" | tee -a "$folder/log" >&2
}
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
