#!/bin/bash
# The main job of `./quickstart run`: builds, installs into build/install, and shows the installed stack at work.
set -u
cd "$(dirname "$0")/../.." || exit 2
. config/ci/lib.sh

step "build and install" bash config/ci/install.sh "$BUILD" || exit 1
PATH=$BUILD/install/bin:$PATH
status=0

show() { # headline command...: with its output, limited in time
    printf '\n== %s\n   $ %s\n' "$1" "${*:2}"
    timeout --kill-after=5 120 "${@:2}" </dev/null &
    CHILD=$!
    wait "$CHILD" || { status=1 && echo "   FAILED"; }
    CHILD=
}

show "What is there" strata-info --components
show "Ping-pong between two processes: shared memory" \
    strata-run -n 2 --mca btl self,sm strata-perf latency --sizes 8:1m
show "Ping-pong between two processes: InfiniBand verbs, over an adapter in software" \
    strata-run --softhca -n 2 --mca btl self,openib strata-perf latency --sizes 8:1m
show "Ping-pong of a process with itself" \
    strata-run -n 1 --mca btl self strata-perf latency --sizes 8:1m
show "Memory that each component holds, per rank, after everyone has spoken to everyone" \
    strata-run -n 4 strata-perf memory
rm -rf "$BUILD/memscale"
show "Memory, start and latency as ranks grow, with figures" \
    strata-memscale -n 2,4,8 -c srq -c per-peer -c sm -o "$BUILD/memscale"
echo
if [ "$status" -eq 0 ]; then
    echo "All of it works. To use it from here:  export PATH=$BUILD/install/bin:\$PATH"
    echo "                                       export PKG_CONFIG_PATH=$BUILD/install/lib/pkgconfig"
    echo "README.md goes on from this point; docs/tutorial.md is a first program."
fi
exit "$status"
