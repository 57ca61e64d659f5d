#!/usr/bin/env bash
# Protocols follow what this machine's copies cost: bench/slow_machine.c, preloaded, makes one kind slower, and what strata-info --tuning
# says of shared memory changes with it. The factors are far above what a busy machine adds to the least of four measurements.
. "$STRATA_SOURCE/tests/integration/lib.sh"
export STRATA_MCA_mca_component_path=$STRATA_BUILD/plugins
[ -z "${SANITIZER_FLAGS-}" ] || { echo "SKIP: a sanitizer has a memcpy of its own" && exit 77; }
[ "$(nproc)" -ge 2 ] || { echo "SKIP: with one processor single copy is chosen unmeasured" && exit 77; }
slow=$STRATA_BUILD/bench/.libs/slow_machine.so

tuned() { # FILE SLOW_MACHINE
    LD_PRELOAD=$slow SLOW_MACHINE=$2 strata-info --tuning --json --mca btl self,sm >"$work/$1" 2>"$work/err" ||
        { cat "$work/err" && fail "strata-info --tuning with $2"; }
}
if ! strata-info --tuning --mca btl self,sm | grep -q ' get'; then
    echo "SKIP: the kernel forbids copies between processes here" && exit 77
fi
tuned never vm=never
tuned dear vm=60
tuned cheap copy=60
check "ways follow costs" python3 - "$work" <<'PY'
import json, sys

def ways(name):
    with open(f"{sys.argv[1]}/{name}", encoding="ascii") as file:
        return json.load(file)["peers"][1]["protocols"]["ways"]

def answers(name, traffic):
    return [(step["from"], step.get("answer")) for step in ways(name)[traffic]]

single = ("get", "put", "get and put")
for traffic in ("window", "alone", "crosses"):
    assert not any(a in single for _, a in answers("never", traffic)), (traffic, ways("never"))
# A window: dear single copies are never made, cheap ones above 64 KiB at the latest.
assert not any(a in single for _, a in answers("dear", "window")), ways("dear")
assert min(n for n, a in answers("cheap", "window") if a in single) <= 65537, ways("cheap")
# A message alone is asked for from a shorter length on where single copies are cheap.
least = {name: min((n for n, a in answers(name, "alone") if a in single), default=1 << 40) for name in ("dear", "cheap")}
assert least["cheap"] < least["dear"], least
PY

LD_PRELOAD=$slow SLOW_MACHINE=copy=0.5 env true 2>"$work/err"
check "a factor below 1 is refused" grep -q '"copy=0.5" is not' "$work/err"
check "another size of pages" test "$(LD_PRELOAD=$slow SLOW_MACHINE=page=64k getconf PAGESIZE)" = 65536
if [ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1; then
    # Whoever asks the kernel about pages goes by the kernel's, and memory is registered as on any machine: nothing is warned of.
    LD_PRELOAD=$slow SLOW_MACHINE=page=64k timeout -k 2 "$job_limit" strata-run --softhca -n 2 --mca btl openib,self --mca rcache tree \
        strata-perf latency --sizes 8:64k --iters 20 --batches 2 >"$work/out" 2>"$work/err"
    status=$?
    grep warning "$work/err" && status=warned
    check "a job over a device with another size of pages" test "$status" = 0
fi
finish
