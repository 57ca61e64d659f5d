#!/usr/bin/env bash
# strata-info --tuning: which protocol serves which length and traffic, by which limits, facts and parameters.
. "$STRATA_SOURCE/tests/integration/lib.sh"
export STRATA_MCA_mca_component_path=$STRATA_BUILD/plugins

# Without a job it starts one of two ranks.
expect_status 0 strata-info --tuning --mca btl self,sm
out_has '^To rank 0 by self: latency [1-9][0-9]* ns, bandwidth [1-9][0-9]* MB/s$'
out_has '^To rank 1 by sm: '
out_has '^  window: many messages under way'
out_has 'from          0 bytes  eager$'
out_has '^  late: as window, '
out_has '^  receiver: unknown (0 of the last 0 '
check "nothing is said on standard error" test ! -s "$work/err"

# What the transport has measured stands beside; with mca_base_tune=off nothing is.
expect_status 0 strata-info --tuning --json --mca btl self,sm --mca mca_base_tune off
check "nothing is measured or learnt" python3 -c 'import json, sys
peer = json.load(open(sys.argv[1]))["peers"][1]
assert peer["paths"][0]["measured"] is None
assert "receiver" not in peer["protocols"] and "late" not in peer["protocols"]["ways"]' "$work/out"

# The user's limits are named, and are those that count.
expect_status 0 strata-info --tuning --json --mca btl self,sm --mca pml_ob1_eager_limit 3000 --mca pml_ob1_stream_limit 20000 \
    --mca pml_ob1_rndv put
check "the user's limits" python3 - "$work/out" <<'PY'
import json, sys
peers = json.load(open(sys.argv[1]))["peers"]
assert [p["rank"] for p in peers] == [0, 1]
p = peers[1]["protocols"]
assert p["parameters"] == ["pml_ob1_eager_limit", "pml_ob1_stream_limit", "pml_ob1_rndv"], p["parameters"]
assert [(s["from"], s["protocol"], s.get("answer")) for s in p["ways"]["window"]] == [
    (0, "eager", None), (3001, "stream", None), (20001, "rendezvous, address", "put")], p["ways"]
assert p["facts"]["latency_ns"] > 0 and set(p["ways"]) == {"window", "alone", "crosses"}
PY

# So do limits of a transport.
. "$STRATA_SOURCE/tests/support/preload.sh"
if openib_on_softhca && [ -z "${SANITIZER_FLAGS-}" ]; then
    expect_status 0 strata-run -n 2 --softhca strata-info --tuning --json --mca btl openib,self --mca btl_openib_stream_limit 12345 \
        --mca btl_openib_split_min 77777
    check "the user's limits of a transport" python3 - "$work/out" <<'PY'
import json, sys
p = json.load(open(sys.argv[1]))["peers"][1]["protocols"]
assert p["stream_limit"] == 12345 and p["split_min"] == 77777, p
PY
fi

# The report about transports says the same.
expect_status 0 strata-run -n 2 --report-transports strata-perf bw --sizes 32k:32k --iters 20 --batches 2 --mca btl self,sm
err_has 'peer 1: ways by class of traffic: window: eager, from [0-9]* '
err_has 'peer 1: protocols.* habit [a-z]*, answers [0-8], '

# Within a job: its peers, said once.
expect_status 0 strata-run -n 3 strata-info --tuning --mca btl self,sm
check "three ranks" test "$(grep -c '^To rank' "$work/out")" = 3

expect_status 2 strata-info --tuning --devices
err_has 'stands alone'
expect_status 2 strata-info --tuning --mca btl smm
err_has 'did you mean "sm"'
finish
