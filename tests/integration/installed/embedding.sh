#!/bin/bash
# docs/examples/embedding: an embedder in C, in C++17 and in Python, built against the installed tree and run. Run by
# ../plugin_test.sh.
set -eu
. "$STRATA_SOURCE/tests/integration/installed/lib.sh"

cd "$work/examples/embedding"
runs() { # WHAT COMMAND...
    local what=$1 out
    shift
    out=$(timeout -k 5 "$job_limit" "$@" 2>&1) || fail "the embedder in $what: status $?: $out"
    grep -q '^4 ranks, [0-9]* numbers around the ring: ok$' <<<"$out" || fail "the embedder in $what: $out"
    echo "embedder in $what: ok"
}
make -s threads-c CFLAGS="-O2 -g -Werror ${SANITIZER_FLAGS-}" || fail "threads.c does not build"
export LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
runs C ./threads-c
if command -v g++ >/dev/null; then
    make -s threads-cxx CXX=g++ CXXFLAGS="-O2 -g -Werror ${SANITIZER_FLAGS-}" || fail "threads.cc does not build"
    runs C++17 ./threads-cxx
fi
# A sanitizer's library would have to be in Python first.
if command -v python3 >/dev/null && [ -z "${SANITIZER_FLAGS-}" ]; then
    runs "Python's ctypes" python3 threads.py
    runs "Python's ctypes, by name" env STRATA_LIBRARY="$root/lib/libstrata.so.0" python3 threads.py
fi
# Over each way: requests that complete at once, and requests that do not.
runs "C, without single copies" env STRATA_MCA_btl_sm_single_copy=off ./threads-c
runs "C, with few slots" env STRATA_MCA_btl_sm_rings=0 STRATA_MCA_btl_sm_queue_slots=8 ./threads-c
