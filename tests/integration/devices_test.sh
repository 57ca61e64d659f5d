#!/usr/bin/env bash
# strata-info --devices: what each transport says of itself here, outside of any job, and why others cannot be used.
. "$STRATA_SOURCE/tests/integration/lib.sh"
export STRATA_MCA_mca_component_path=$STRATA_BUILD/plugins

expect_status 0 strata-info --devices
out_has '^  self  self$'
out_has '^  sm  shared memory$'
out_has '^      latency  *[1-9][0-9]* ns$'
out_has '^      bandwidth  *[1-9][0-9]* MB/s$'
out_has '^      registration  *not needed$'
out_has '^  shuffle  excluded: its priority is negative'
check "nothing is said on standard error" test ! -s "$work/err"

expect_status 0 strata-info --devices --json --mca btl_sm_eager_limit 3k
check "the JSON" python3 - "$work/out" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["usable"] and not d["error"]
by = {x["component"]: x for x in d["devices"]}
assert by["sm"]["eager_limit"] == 3072 and by["sm"]["device"] == "shared memory" and "get" in by["sm"]["capabilities"]
assert by["self"]["latency_ns"] < by["sm"]["latency_ns"]
for x in d["devices"]:
    assert x["latency_ns"] > 0 and x["bandwidth_mbs"] > 0 and x["max_send"] >= x["eager_limit"] > 0, x
    assert x["needs_registration"] == ("needs_registration" in x["capabilities"]) == (x["max_key"] > 0), x
assert all(x["reason"] and x["component"] not in by for x in d["unusable"])
PY

# A transport with several modules that needs registrations, by name, and what the list leaves out.
expect_status 0 strata-info --devices --json --mca btl shuffle --mca btl_shuffle_rails 3 --mca btl_shuffle_needs_reg 1
check "three modules" python3 - "$work/out" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert [x["component"] for x in d["devices"]] == ["shuffle"] * 3, d["devices"]
assert all(x["needs_registration"] and x["max_key"] == 32 for x in d["devices"])
assert {"self", "sm"} <= {x["component"] for x in d["unusable"] if x["fate"] == "excluded"}
PY

# Within a job it joins nothing: the ranks need not be there together.
expect_status 0 strata-run -n 2 sh -c '[ "$PMIX_RANK" = 1 ] || strata-info --devices'
out_has '^  sm  shared memory$'

# What was asked for and cannot be used: the table, the reason, and status 1. A name that does not exist: 2.
expect_status 1 strata-info --devices --mca btl sm --mca btl_sm_memory_limit 4k
out_has '^  sm  rejected: no shared memory'
err_has 'no context could be made: '
expect_status 2 strata-info --devices --mca btl smm
err_has 'did you mean "sm"'

# shellcheck disable=SC2154 # by `make check`
case ${SANITIZER_FLAGS-} in ?*) finish ;; esac
[ -f "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] || finish
SOFTHCA_DEVICES=2 expect_status 0 strata-run -n 1 --softhca strata-info --devices
for device in soft0:1 soft1:1; do out_has "^  openib  $device\$"; done
out_has '^      registration  *needed$'
out_has '^      largest key  *32 bytes$'
SOFTHCA_MEMLOCK=64k expect_status 0 strata-run -n 1 --softhca strata-info --devices
out_has '^  openib  rejected: soft0:1: no registered buffers can be made: Cannot allocate memory'
finish
