#!/bin/bash
# Writes docs/measured/channel.md: `strata-perf channel` with the machine it ran on. Started by `make bench-channel`.
#   ROUNDS    turns (5), as far as MINUTES last (11)
#   CHANNEL   more options of strata-perf channel; with `guest` in front: openib alone, on Soft-RoCE in the guest, into
#             channel-guest.md
#   OUT       another file
# shellcheck disable=SC2153 # what the environment sets
set -u
source=${STRATA_SOURCE:?run make bench-channel} build=${STRATA_BUILD:?run make bench-channel}
read -ra options <<<"${CHANNEL-}"
out=$source/docs/measured/channel.md run=() where=''
if [ "${options[0]-}" = guest ]; then
    shim=$build/bench/rxe_as_ib.so
    mkdir -p "$build/bench"
    "${CC:-gcc}" -O2 -Wall -Wextra -fPIC -shared -o "$shim" "$source/bench/rxe_as_ib.c" -libverbs -ldl || exit 1
    options=(--wires openib --device rxe0 --preload "$shim" "${options[@]:1}")
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PMIX_MCA_gds=hash UCX_UD_VERBS_ETH_DGID_CHECK=n
    run=("$source/tests/guest/run" --timeout $((${MINUTES:-11} * 120 + 300)) -x OMPI_ALLOW_RUN_AS_ROOT -x OMPI_ALLOW_RUN_AS_ROOT_CONFIRM)
    out=$source/docs/measured/channel-guest.md where=', openib on Soft-RoCE in the emulated guest'
fi
out=${OUT:-$out}
text=$(mktemp) || exit 1
trap 'rm -f "$text"' EXIT
cat >"$text" <<END
# Channels beside other ways

Machine: $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)$where, load
$(cut -d' ' -f1 /proc/loadavg) at the start. $(date +%F). Written by \`make bench-channel${CHANNEL:+ CHANNEL=\"$CHANNEL\"}\`, at most ${ROUNDS:-5} rounds in
${MINUTES:-11} minutes.

END
${run[@]+"${run[@]}"} strata-perf channel --rounds "${ROUNDS:-5}" --minutes "${MINUTES:-11}" --timeout 30 ${options[@]+"${options[@]}"} >>"$text"
status=$? # 1: a job of Strata failed, the others count
[ "$status" -le 1 ] || exit "$status"
cat "$text"
cp "$text" "$out"
exit "$status"
