#!/bin/bash
# strata-memscale over other libraries: measured as Strata is, by the same program.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tool=strata-memscale
case ${SANITIZER_FLAGS-} in ?*) echo "the MPIs' programs have no sanitizer" && exit 77 ;; esac
[ -x "$STRATA_BUILD/strata-memscale-rank.openmpi" ] && command -v mpirun.openmpi >/dev/null || { echo "no Open MPI"; exit 77; }

expect_status 0 $tool -n 2 -p alltoall -c sm -c openmpi-vader -o "$work/results"
names="sm openmpi-vader"
if [ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && [ -x "$STRATA_BUILD/strata-memscale-rank.mpich" ] &&
    command -v mpiexec.mpich >/dev/null; then
    expect_status 0 $tool -n 2 -p pairwise -c openmpi -c mpich-ud -o "$work/results"
    names="$names openmpi mpich-ud"
fi
# shellcheck disable=SC2086 # names are words
check "the results" python3 - "$work/results" $names <<'PY'
import json, sys
found = {r["config"]: r for r in json.load(open(sys.argv[1] + "/results.json"))}
assert sorted(found) == sorted(sys.argv[2:]), found.keys()
for name, r in found.items():
    assert r["library"].startswith({"o": "Open MPI", "m": "MPICH"}.get(name[0], "Strata")), r
    assert r["mean"]["private"] > 500e3 and 0 < r["latency_us"]["q1"] <= r["latency_us"]["median"] <= r["latency_us"]["q3"], r
    assert (r["mean"]["device_share"] > 0) == (r["transport"].endswith("softhca")), r
PY
# Without the MPIs on the path they are left out, and named.
mkdir "$work/bin"
for program in bash sh sed ls cat basename dirname; do ln -s "$(command -v "$program")" "$work/bin/$program"; done
expect_status 0 env PATH="$STRATA_BUILD:$work/bin" strata-memscale --peers -n 2 -p hello -c sm -o "$work/none"
err_has 'without openmpi-vader: no mpirun.openmpi'
finish
