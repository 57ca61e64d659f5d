#!/bin/bash
# strata-miba finds each known cost of softhca within 5 % in the right test, and nothing elsewhere: bench/miba_proof.py by a clock that
# only the costs and the readings of the clock move (data/virtual_clock.c), so that other work on the machine changes no figure. For the
# serialised engine each thread that posts has a clock of its own, and the one that is the furthest behind is next (data/virtual_turns.c).
# starts first
. "$STRATA_SOURCE/tests/miba/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
built() { # NAME SOURCES...
    local name=$1
    shift
    "${CC:-gcc}" -O2 -Wall -Wextra -Werror -fPIC -shared -o "$work/$name.so" "${@/#/$STRATA_SOURCE/tests/miba/data/}" -ldl -lpthread ||
        { echo "FAILED: $name"; exit 1; }
}
built virtual_clock virtual_clock.c
built virtual_turns virtual_clock.c virtual_turns.c
proof() { # STATUS FACTOR COST...
    local status=0 only=()
    for cost in "${@:3}"; do only+=(--only "$cost"); done
    timeout -k 2 "$job_limit" python3 "$STRATA_SOURCE/bench/miba_proof.py" "$tool" "$first$work/$clock.so:$library" --rounds 1 \
        --samples "$(form 3 5)" --floor 1 --factor "$2" "${only[@]}" >"$work/out" 2>"$work/err" || status=$?
    cp "$work/out" "$work/short"
    check "$2 times ${*:3}: exit status $status instead of $1" test "$status" = "$1"
    grep -E '^(ok|WRONG) ' "$work/out"
}
costs=(reg page dereg qp qp_entry cq cq_entry modify destroy post_send post_recv poll segment max_sge packet cold switch event byte)
engines=(engine load)
factors=$(form 1 '0.2 1') # and twice of each
say_form "${#costs[@]} costs, each $factors times and twice that, $(form 3 5) samples"
clock=virtual_clock
for factor in $factors; do proof 0 "$factor" "${costs[@]}"; done
# A send that is waited for by events takes one of them in each round trip by the clock of one side, so half of one is in the figure,
# although softhca makes an event at once when a queue is armed that holds completions.
event_of_send() { # TIME: nanoseconds of a message
    timeout -k 2 "$job_limit" env LD_PRELOAD="$first$work/virtual_clock.so:$library" SOFTHCA_COST="event=$1" "$tool" events --op send \
        --transport RC --size 8 --count 16 --samples "$(form 3 5)" --timeout 60 --csv 2>"$work/err" | awk -F, '$5 == "latency" && $7 == 1 { print $9 }'
}
once=$(event_of_send 10us) twice=$(event_of_send 20us)
check "10 us more of an event make a message 5 us longer: ${once:-none}, ${twice:-none} ns" \
    awk -v a="${once:-0}" -v b="${twice:-0}" 'BEGIN { exit !(b - a > 4750 && b - a < 5250) }'
# The serialised engine is in the figures of several threads, and not in those of one.
clock=virtual_turns
proof 0 1 "${engines[@]}"
# It is the engine: where each process has its own, loaders change no figure.
proof 1 1 apart
check "loaders of other engines do not show" awk '/^WRONG apart/ { sub(/.*found */, ""); n += $1 > -600 && $1 < 600 } END { exit n != 3 }' \
    "$work/out"
clock=virtual_clock
# A cost that no test pays for is not found.
proof 1 1 none
check "no test shows it" grep -q '^WRONG none' "$work/out"
# Nor is it overlooked where there should be none, beside much larger ones.
proof 1 1 slight
check "a slight cost shows" test "$(grep -c '^WRONG slight' "$work/out")" = 1
check "each cost of the table is proven here" python3 -B - "$STRATA_SOURCE/bench" "${costs[@]}" "${engines[@]}" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import miba_proof
assert [key for key, *_ in miba_proof.PROOFS] == sys.argv[2:], sys.argv
PY
finish
