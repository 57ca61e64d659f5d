#!/bin/bash
# Memory goes away while registrations are kept, on a real kernel's verbs: Soft-RoCE pins pages, so what is stale is wrong
# data, in silence.
. "$STRATA_SOURCE/tests/guest/lib.sh"
blind=^$(cd "$STRATA_BUILD/components" && for d in memory_*/; do [ ! -e "$d/lib${d%/}.la" ] || printf '%s,' "${d#memory_}"; done | tr -d /)
blind=${blind%,}
job() { # arguments of strata-run...
    run "$guest" strata-run -n 2 --mca btl openib,self --mca btl_openib_rdma_min 16k "$@"
}
says() { # REGEX: both ranks
    check "both ranks say $1: $(cat "$work/out")" test "$(grep -cE "^rank [01]: $1" "$work/out")" = 2
}
steps=$STRATA_BUILD/tests/programs/memory_steps
registered=$STRATA_BUILD/tests/programs/registered

job "$steps" 20000 30 2
check "random steps: status $status" test "$status" = 0
says '[0-9]+ steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, [1-9][0-9]* found, [1-9][0-9]* gone'
job --mca rcache none "$steps" 20000 20 2
check "random steps, nothing kept: status $status" test "$status" = 0
says '[0-9]+ steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, 0 found'
# Nothing tells: wrong bytes, which proves the test.
job --mca rcache tree --mca memory "$blind" "$steps" 20000 20 2
check "random steps, nothing tells: status $status" test "$status" != 0
check "wrong bytes are found: $(cat "$work/out" "$work/err")" grep -qE '[1-9][0-9]* wrong bytes' "$work/out"
# Each way by itself, in one guest.
cat >"$work/ways" <<'END_OF_SCRIPT'
for way in munmap dontneed mremap fixed shmdt brk malloc; do
    timeout 200 strata-run -n 2 --mca btl openib,self --mca btl_openib_rdma_min 16k "$1" gone $way 4
    echo "$way: status $?"
done
timeout 200 strata-run -n 2 --mca btl openib,self --mca btl_openib_rdma_min 16k "$1" fork
echo "fork: status $?"
END_OF_SCRIPT
run "$guest" bash "$work/ways" "$registered"
for way in munmap dontneed mremap fixed shmdt brk malloc; do
    says "4 $way, [0-9]+ registrations, [1-9][0-9]* found, 0 evicted"
    check "$way works" grep -q "^$way: status 0" "$work/out"
done
check "fork works" grep -q "^fork: status 0" "$work/out"
finish
