#!/bin/bash
# Threads that send by channels of their own: one alone, two of a context, two of contexts of their own, over shared memory and over
# softhca, in turn. Writes docs/measured/channel-threads.md, or the file OUT. Started by `make bench-channel-threads`; ROUNDS turns.
set -u
rounds=${ROUNDS:-3}
out=${OUT:-$STRATA_SOURCE/docs/measured/channel-threads.md}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
job() { # KIND WIRE OPTION-OF-STRATA-RUN...
    local kind=$1 wire=$2 how=threads ranks=2
    shift 2
    case $kind in two) ranks=3 ;; apart) ranks=4 how=processes ;; esac
    timeout -k 5 60 strata-run "$@" --bind-to none -n $ranks "$STRATA_BUILD/bench/channel_threads" $how 6 2>"$work/err" |
        sed "s/^/$wire $kind /" >>"$work/figures"
    [ "${PIPESTATUS[0]}" = 0 ] || sed -n "1,3s/^/channel_threads.sh: $wire, $kind: /p" "$work/err" >&2
}
for _ in $(seq "$rounds"); do
    for kind in alone two apart; do
        job $kind sm --mca btl sm,self
        job $kind openib --softhca --mca btl openib,self
    done
done
page() {
    cat <<END
# Threads that send by channels of their own

Machine: $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r), load
$(cut -d' ' -f1 /proc/loadavg) at the end. $(date +%F). Written by \`make bench-channel-threads\`, $rounds turns: messages of 8 bytes at
STRATA_THREAD_MULTIPLE, millions per second of all senders together, median (least to most). Each thread has a channel of
its own to a process of its own. Two threads of a context share its lock, queue pair and completion queue; two contexts
share nothing, which bounds what a queue pair per channel could gain.

| wire | one thread | two threads of a context | two contexts |
|---|---|---|---|
END
    for wire in sm openib; do
        printf '| %s |' $wire
        for kind in alone two apart; do
            sed -n "s/^$wire $kind //p" "$work/figures" | sort -g |
                awk '{ v[NR] = $1 } END { if (NR) printf " %.3f (%.3f to %.3f) |", v[int((NR + 1) / 2)], v[1], v[NR]; else printf " - |" }'
        done
        echo
    done
}
page >"$work/page"
cat "$work/page"
[ -s "$work/figures" ] && cp "$work/page" "$out"
