#!/bin/bash
# Memory goes away while its registration is kept, over softhca: in each way separately, and at random for longer. SEED=N repeats a run.
. "$STRATA_SOURCE/tests/openib/memory/registration_lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
: "${SEED:=1}"
export SEED
count=$(form 4000 40000)
say_form "$count random steps, seed $SEED; $(form "without a cache in three of eight ways" "without a cache in every way")"
for way in munmap dontneed free mremap fixed shmdt brk malloc; do
    try 0 tree gone $way 8
    both "8 $way, [0-9]+ registrations, [1-9][0-9]* found, 0 evicted, [1-9]"
    case $way in munmap | shmdt | brk) ;; *) full_form || continue ;; esac
    try 0 none gone $way 8
    both "8 $way, 16 registrations, 0 found"
done
# The same without a source of memory events, which proves the test. softhca does not watch a shared segment; malloc may keep its memory.
for way in munmap $(form '' 'dontneed free mremap') fixed; do
    try nonzero tree STRATA_MCA_memory="$blind" gone $way 8
    says 'registered memory was used after it had been unmapped'
done
steps 0 "$count" 600
both '[0-9]{4,} steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, [1-9][0-9]* found, [1-9][0-9]* gone'
steps 0 $((count / 4)) 600 STRATA_MCA_rcache=none
both '[0-9]+ steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, 0 found'
finish
