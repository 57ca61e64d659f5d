#!/bin/bash
# strata-memscale on two machines, by mpirun as its launcher: all ranks are measured, and speak to each other across the machines.
# starts first
. "$STRATA_SOURCE/tests/cluster/lib.sh"
veth eth0
for m in 1 2; do network $m eth0 there 10.77.0.$m/24 || skip "eth0 cannot be set up"; done
wait_until link_is eth0 UP
launcher="$work/on 1 mpirun.openmpi --mca plm_rsh_agent $work/agent --host $control.1:2,$control.2:2"
launcher+=" --mca oob_tcp_if_include $control.0/24 --map-by node --bind-to none"
launcher+=" -x PATH -x STRATA_MCA_mca_component_path -x STRATA_MCA_mca_param_files -n %n"
expect_status 0 strata-memscale --launcher "$launcher" -n 2,4 -p hello,alltoall -c 'both:tcp;mca_base_report_transports=text' \
    -o "$work/results"
err_has 'machine2:'
check "across machines: tcp" grep -q 'path 1 of 1 by tcp' "$work/err"
check "the results" python3 - "$work/results" <<'PY'
import json, sys
found = {(r["pattern"], r["ranks"]): r for r in json.load(open(sys.argv[1] + "/results.json"))}
assert sorted(found) == [("alltoall", 2), ("alltoall", 4), ("hello", 2), ("hello", 4)], found.keys()
for (pattern, n), r in found.items():
    assert ("latency_us" in r) == (pattern != "hello") and r["launcher"].endswith("-n %n"), r
    assert (r["mean"]["first_us"] > 0) == (pattern != "hello") and r["mean"]["private"] > 100e3, r
PY
check "the ranks leave nothing" test -z "$(find "$work/results" -name 'strata-memscale.*')"
finish
