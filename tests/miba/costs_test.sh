#!/bin/bash
# strata-miba finds known costs of softhca in the right tests and nowhere else (proof.py). The tolerance is wide and there are many
# rounds, since the machine may be busy; `make bench-miba` wants 5 %. One engine for both sides needs two processors that are idle, so
# it is looked for there only.
. "$STRATA_SOURCE/tests/miba/lib.sh" || exit 1
case ${SANITIZER_FLAGS-} in ?*) skip "sanitizers make times of their own" ;; esac
costs=(reg page dereg qp qp_entry cq cq_entry modify destroy post_send post_recv poll segment max_sge packet cold switch event byte)
only=()
for cost in "${costs[@]}"; do only+=(--only "$cost"); done
status=0
python3 "$STRATA_SOURCE/tests/miba/proof.py" "$tool" "$preload" --tolerance 0.3 --rounds 40 --samples 7 --time 10 "${only[@]}" \
    >"$work/out" 2>"$work/err" || status=$?
cut -c 1-160 "$work/out"
tail -n 8 "$work/out" >"$work/short"
check "proof.py: status $status" test "$status" = 0
for cost in "${costs[@]}"; do out_has "^ok +$cost="; done
# A cost that is not set is not found: the proof can fail.
status=0
python3 "$STRATA_SOURCE/tests/miba/proof.py" "$tool" "$preload" --tolerance 0.3 --rounds 2 --samples 3 --time 2 \
    --only none >"$work/out" 2>"$work/err" || status=$?
check "a cost that nothing pays for is not found: status $status" test "$status" = 1
out_has 'not found: none'
finish
