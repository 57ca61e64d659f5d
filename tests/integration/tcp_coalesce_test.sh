#!/bin/bash
# Nonblocking sends in a burst over TCP share frames, if a copy of the message costs less than a frame; single messages go alone.
# strata-perf checks the bytes that arrive.
. "$STRATA_SOURCE/tests/integration/lib.sh"
# A counter of the job, summed.
counted() { # COUNTER
    python3 -c 'import json, sys
print(sum(row["sum"] for line in open(sys.argv[1]) for row in json.loads(line)["rows"] if row["name"] == sys.argv[2]))' "$work/report" "$1"
}
burst() { # TEST [OPTION]...
    expect_status 0 strata-run -n 2 --mca btl tcp,self "${@:2}" --report-counters=json --report-file "$work/report" \
        strata-perf "$1" --sizes 8:16k --iters 5 --batches 1 --check
}
for test in bibw bw; do
    burst $test
    together=$(counted pml_ob1_coalesced)
    burst $test --mca btl_tcp_coalesce_at 0
    echo "$test: $together messages went with others; without bursts $(counted pml_ob1_coalesced)"
    check "$test: most of a window goes with others" test "$together" -gt 2500
done
burst bw --mca pml_ob1_coalesce 64
few=$(counted pml_ob1_coalesced)
check "no longer ones than the parameter says" test "$few" -gt 250 -a "$few" -lt "$together"
burst latency
check "one message at a time goes alone" test "$(counted pml_ob1_coalesced)" = 0
finish
