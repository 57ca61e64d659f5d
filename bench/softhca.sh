#!/usr/bin/env bash
# softhca's speed: bench/softhca with softhca preloaded, and the instructions of a post and a poll by callgrind. Targets
# that are missed are said; the exit status is 0 whenever it could be measured. ROUNDS: turns, 15.
set -euo pipefail
build=${STRATA_BUILD:?run make bench-softhca}
library=$build/softhca/.libs/libsofthca.so
if [ ! -e "$library" ] || [ ! -x "$build/bench/softhca" ]; then
    echo "bench-softhca: no libibverbs in this build; on Debian: apt-get install libibverbs-dev" >&2
    exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export SOFTHCA_FABRIC=bench-$$

LD_PRELOAD=$library "$build/bench/softhca" "${ROUNDS:-15}"
SOFTHCA_SHORT=0 LD_PRELOAD=$library "$build/bench/softhca" "${ROUNDS:-15}"

if ! command -v valgrind >/dev/null; then
    echo "bench-softhca: no valgrind: instructions are not counted" >&2
    exit 0
fi

count() { # windows: instructions inside post_and_poll
    SOFTHCA_SHORT=0 LD_PRELOAD=$library valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
        --toggle-collect='post_and_poll*' "$build/bench/softhca" count "$1" 2>"$log" || {
        cat "$log" >&2
        return 1
    }
    sed -n 's/.*Collected *: *\([0-9]*\).*/\1/p' "$log"
}
# Two numbers of posts: what is left besides them cancels.
few=$(count 4) many=$(count 12)
read -r posts_few few <<<"$(tr '\n' ' ' <<<"$few")"
read -r posts_many many <<<"$(tr '\n' ' ' <<<"$many")"
printf '%-58s %9d %s\n' "post and poll: instructions, the kernel's left out" \
    $(((many - few) / (posts_many - posts_few))) "(callgrind, $((posts_many - posts_few)) times)"
