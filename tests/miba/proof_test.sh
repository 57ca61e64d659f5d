#!/bin/bash
# strata-miba finds each known cost of softhca within 5 % in the right test, and nothing elsewhere: bench/miba_proof.py by a clock that
# only the costs and the readings of the clock move (data/virtual_clock.c), so that other work on the machine changes no figure. The
# serialised engine is not among them: a side that waits for the other one does not read the clock.
# starts first
. "$STRATA_SOURCE/tests/miba/lib.sh" || exit 1
"${CC:-gcc}" -O2 -Wall -Wextra -Werror -fPIC -shared -o "$work/virtual_clock.so" "$STRATA_SOURCE/tests/miba/data/virtual_clock.c" -ldl ||
    { echo "FAILED: virtual_clock.c"; exit 1; }
proof() { # STATUS COST FACTOR
    local status=0
    timeout -k 2 "$job_limit" python3 "$STRATA_SOURCE/bench/miba_proof.py" "$tool" "$first$work/virtual_clock.so:$library" --rounds 1 \
        --samples 5 --floor 1 --factor "$3" --only "$2" >"$work/out" 2>"$work/err" || status=$?
    cp "$work/out" "$work/short"
    check "$3 times $2: exit status $status instead of $1" test "$status" = "$1"
    grep -E '^(ok|WRONG) ' "$work/out"
}
for cost in reg page dereg qp qp_entry cq cq_entry modify destroy post_send post_recv poll segment max_sge packet cold switch event byte; do
    for factor in 0.2 1; do proof 0 "$cost" $factor; done # and twice of each
done
# A send that is waited for by events takes one of them in each round trip by the clock of one side, so half of one is in the figure,
# although softhca makes an event at once when a queue is armed that holds completions.
event_of_send() { # TIME: nanoseconds of a message
    timeout -k 2 "$job_limit" env LD_PRELOAD="$first$work/virtual_clock.so:$library" SOFTHCA_COST="event=$1" "$tool" events --op send \
        --transport RC --size 8 --count 16 --samples 5 --timeout 60 --csv 2>"$work/err" | awk -F, '$5 == "latency" && $7 == 1 { print $9 }'
}
once=$(event_of_send 10us) twice=$(event_of_send 20us)
check "10 us more of an event make a message 5 us longer: ${once:-none}, ${twice:-none} ns" \
    awk -v a="${once:-0}" -v b="${twice:-0}" 'BEGIN { exit !(b - a > 4750 && b - a < 5250) }'
# A cost that no test pays for is not found.
proof 1 none 1
check "no test shows it" grep -q '^WRONG none' "$work/out"
# Nor is it overlooked where there should be none, beside much larger ones.
proof 1 slight 1
check "a slight cost shows" test "$(grep -c '^WRONG slight' "$work/out")" = 1
check "each cost of the table is proven here or is the engine" python3 -B - "$STRATA_SOURCE/bench" "$0" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import miba_proof
here = open(sys.argv[2]).read().split("for cost in ")[1].split(";")[0].split()
assert [key for key, *_ in miba_proof.PROOFS if key != "engine"] == here
PY
finish
