#!/bin/bash
# starts first
# Many ranks on few processors connect to each other by TCP at once, so that the answer to a call takes a turn of all of them: no peer
# is given up that answers. Short form: 24 ranks with limits so short that calls are sent away again and again. Full form: besides
# 512 ranks with the default limits, 130,816 pairs.
. "$STRATA_SOURCE/tests/hostile/lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form "24 ranks" "24 and 512 ranks")"
traffic=$STRATA_BUILD/tests/programs/traffic
run 0 strata-run -n 24 --mca btl tcp,self --mca btl_tcp_connect_timeout_ms 300 --mca btl_tcp_handshake_timeout_ms 50 --mca btl_tcp_strangers 1 \
    --report-counters=json --report-file="$work/counters" "$traffic" alltoall 64 1 1
grep -q '^alltoall 64 ' "$work/out" || complain "not all has arrived among 24 ranks"
python3 - "$work/counters" <<'PY' || complain "no call was sent away: the limits were not reached"
import json, sys
total = {r["name"]: r["sum"] for r in json.load(open(sys.argv[1]))["rows"]}
print(f"{total['btl_tcp_dials']} calls, {total['btl_tcp_refused']} sent away")
sys.exit(total["btl_tcp_refused"] == 0)
PY
if full_form; then
    run 0 strata-run -n 512 --mca btl tcp,self "$traffic" alltoall 64 1 1
    grep -q '^alltoall 64 ' "$work/out" || complain "not all has arrived among 512 ranks"
fi
finish
