#!/bin/bash
# strata-miba on the kernel's Soft-RoCE, in a guest: each test measures or says why it cannot, and 1 GiB is skipped by name.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
tool=$STRATA_BUILD/strata-miba
out=$(mktemp)
[ -x "$tool" ] || { echo "SKIP: strata-miba was not built"; exit 77; }
status=0
"$tool" qp qp_connected cm cq post_send post_recv poll_empty poll_full latency bandwidth mtu events inline srq atomics visibility \
    --device rxe0 --samples 3 --time 1 --values 8,1024 --json >"$out" || status=$?
"$tool" registration --values 4k,4g --device rxe0 --samples 3 --time 1 >"$out.registration" || status=$?
cat "$out.registration"
grep -q 'register  *touched  *size 4096  *[0-9]' "$out.registration" || status=1
grep -q 'registration  *touched  *size 4294967296  *skipped: ' "$out.registration" || status=1
python3 - "$out" <<'END' || status=1
import json, sys
d = [json.loads(line) for line in open(sys.argv[1])]
r = [o for o in d if "figure" in o]
for o in r:
    print(o["figure"], o["op"], o["transport"], o["variant"], o["value"], o["status"], o.get("median", o.get("reason")))
assert d[-1] == {"status": 0, "results": len(r)}, d[-1]
measured = {o["test"] for o in r if o["status"] in ("ok", "marked")}
missing = {"qp", "qp_connected", "cq", "post_send", "post_recv", "poll_empty", "poll_full", "latency", "bandwidth", "mtu",
           "inline", "atomics"} - measured
assert not missing, missing
END
rm -f "$out" "$out.registration"
exit $status
