#!/bin/bash
# Writes docs/measured/channel.md: `strata-perf channel` with the machine it ran on. Started by `make bench-channel`. ROUNDS: turns,
# as far as MINUTES last; CHANNEL: more options of it; OUT: another file.
set -u
out=${OUT:-$STRATA_SOURCE/docs/measured/channel.md}
text=$(mktemp) || exit 1
trap 'rm -f "$text"' EXIT
read -ra options <<<"${CHANNEL-}"
command="strata-perf channel --rounds ${ROUNDS:-5} --minutes ${MINUTES:-11} --timeout 30${CHANNEL:+ $CHANNEL}"
cat >"$text" <<END
# Channels beside other ways

Machine: $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r), load
$(cut -d' ' -f1 /proc/loadavg) at the start. $(date +%F). Written by \`make bench-channel\`: \`$command\`.

END
strata-perf channel --rounds "${ROUNDS:-5}" --minutes "${MINUTES:-11}" --timeout 30 ${options[@]+"${options[@]}"} >>"$text"
status=$? # 1: a job of Strata failed, the others count
[ "$status" -le 1 ] || exit "$status"
cat "$text"
cp "$text" "$out"
exit "$status"
