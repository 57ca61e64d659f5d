#!/bin/bash
# A transport in C++17, docs/examples/btl_cxxbox: built against the installed tree, with no warning, and messages over it. Run by
# ../plugin_test.sh.
set -eu
. "$STRATA_SOURCE/tests/integration/installed/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"

cd "$work/examples"
# shellcheck disable=SC2046,SC2086 # flags are meant to be split
${CC:-cc} -std=gnu11 -O2 ${SANITIZER_FLAGS-} $(pkg-config --cflags strata) ring.c -o ring $(pkg-config --libs strata) \
    -Wl,-rpath,"$root/lib" || fail "ring does not build against the installed tree"
n=0
for compiler in g++ clang++; do
    command -v "$compiler" >/dev/null || continue
    # The build with sanitizers is gcc's.
    [ -z "${SANITIZER_FLAGS-}" ] || [ "$compiler" = g++ ] || continue
    n=$((n + 1))
    make -s -C btl_cxxbox clean
    make -s -C btl_cxxbox install CXX="$compiler" CXXFLAGS="-O2 -g -Werror ${SANITIZER_FLAGS-}" || fail "btl_cxxbox does not build with $compiler"
    exports_only "$HOME/.strata/components/strata_btl_cxxbox.so" st_component_btl_cxxbox
    strata-info --param btl cxxbox --level 9 | grep -q btl_cxxbox_max_send || fail "strata-info does not list its parameters"
    for ranks in $(form 3 "2 3"); do
        out=$(strata-run --timeout "$job_limit" -n $ranks --mca btl self,cxxbox ./ring) || fail "ring, $ranks ranks: $out"
        grep -q ': ok$' <<<"$out" || fail "ring, $ranks ranks: $out"
    done
    report=$(strata-run --timeout "$job_limit" -n 2 --mca btl self,cxxbox --report-transports=json ./ring 2>&1) || fail "ring: $report"
    grep -q '"transport":"cxxbox","bytes_sent":[1-9]' <<<"$report" || fail "nothing went by cxxbox: $report"
    if [ $n = 1 ] || full_form; then
        strata-run --timeout "$job_limit" -n 2 --mca btl self,cxxbox --mca btl_cxxbox_max_send 2k \
            strata-perf latency --check --sizes 1:64k --iters 5 --batches 2 || fail "strata-perf over cxxbox"
        conform 2 cxxbox transport
    fi
    make -s -C btl_cxxbox uninstall || fail "make uninstall"
    echo "btl_cxxbox by $compiler: ok"
done
[ $n -gt 0 ] || { echo "SKIP: no C++ compiler"; exit 77; }
