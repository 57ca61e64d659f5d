#!/bin/bash
# Memory goes away while registrations are kept, on a real kernel's verbs: Soft-RoCE pins pages, so what is stale is wrong
# data, in silence.
# guest:
# short form: not run
. "$STRATA_SOURCE/tests/guest/lib.sh"
blind=^$(cd "$STRATA_BUILD/components" && for d in memory_*/; do [ ! -e "$d/lib${d%/}.la" ] || printf '%s,' "${d#memory_}"; done | tr -d /)
blind=${blind%,}
says() { # REGEX: both ranks
    check "both ranks say $1: $(cat "$work/out")" test "$(grep -cE "^rank [01]: $1" "$work/out")" = 2
}
job() { # WANTED-STATUS arguments of strata-run...
    expect_status "$1" "${openib[@]}" -n 2 --mca btl_openib_rdma_min 16k "${@:2}"
}
steps=$STRATA_BUILD/tests/programs/memory_steps
registered=$STRATA_BUILD/tests/programs/registered

# Steps at random, for so many seconds at most.
job 0 "$steps" 20000 "$(form 8 30)" 2
says '[0-9]+ steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, [1-9][0-9]* found, [1-9][0-9]* gone'
job 0 --mca rcache none "$steps" 20000 "$(form 4 20)" 2
says '[0-9]+ steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, 0 found'
# Nothing tells the cache: wrong bytes, which proves the test.
run "${openib[@]}" -n 2 --mca btl_openib_rdma_min 16k --mca rcache tree --mca memory "$blind" "$steps" 20000 20 2
check "random steps, nothing tells: status $status" test "$status" != 0
check "wrong bytes are found: $(cat "$work/out" "$work/err")" grep -qE '[1-9][0-9]* wrong bytes' "$work/out"
for way in $(form "munmap dontneed" "munmap dontneed mremap fixed shmdt brk malloc"); do
    job 0 "$registered" gone "$way" 4
    says "4 $way, [0-9]+ registrations, [1-9][0-9]* found, 0 evicted"
done
job 0 "$registered" fork
finish
