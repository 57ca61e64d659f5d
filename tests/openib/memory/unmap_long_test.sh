#!/bin/bash
# Memory goes away while registrations are kept, over softhca: each way by itself, and at random for longer.
. "$STRATA_SOURCE/tests/openib/memory/registration_lib.sh"
ways="munmap dontneed free mremap fixed shmdt brk malloc"
for way in $ways; do
    try 0 tree gone $way 8
    both "8 $way, [0-9]+ registrations, [1-9][0-9]* found, 0 evicted, [1-9]"
    try 0 none gone $way 8
    both "8 $way, 16 registrations, 0 found"
done
# The same when nothing tells: what proves the test. A shared segment is not watched by softhca; malloc may keep its memory.
for way in munmap dontneed free mremap fixed; do
    try nonzero tree STRATA_MCA_memory="$blind" gone $way 8
    says 'registered memory was used after it had been unmapped'
done
steps 0 1000000 9
both '[0-9]{4,} steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, [1-9][0-9]* found, [1-9][0-9]* gone'
steps 0 100000 3 STRATA_MCA_rcache=none
both '[0-9]+ steps, [1-9][0-9]* messages received, 0 wrong bytes, [1-9][0-9]* registrations, 0 found'
finish
