#!/usr/bin/env bash
# All benchmarks of the build tree into one text: run.sh FILE. Progress goes to stderr.
set -euo pipefail
out=$1
mkdir -p "$(dirname "$out")"
: >"$out"

part() { # title, command...
    echo "bench: $1" >&2
    {
        printf '## %s\n\n' "$1"
        shift
        "$@" || echo "(ended with status $?)"
        echo
    } | tee -a "$out"
}

{
    printf '# Strata %s, %s, %s\n\n' "$(git -C "${STRATA_SOURCE:-.}" rev-parse --short HEAD 2>/dev/null || echo)" "$(uname -srm)" \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) processors"
} | tee -a "$out"
part "Messages between two ranks" strata-perf compare
part "Start and memory of 64 ranks" strata-perf compare --only start,memory --rounds 3
part "A simulated world of a million ranks" strata-perf world
part "softhca" bash "$(dirname "$0")/softhca.sh"
part "Instructions" bash "$(dirname "$0")/instructions.sh"
echo "RESULT: $out"
