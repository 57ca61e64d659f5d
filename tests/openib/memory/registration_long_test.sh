#!/bin/bash
# User memory over btl_openib on softhca: limits on bytes and on the device, registrations that fail, no registration cache.
. "$STRATA_SOURCE/tests/openib/memory/registration_lib.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "one of four registrations fails in $(form two four) places"

# More buffers than may be registered, by the cache's bytes, by the device's count, by the limit on locked memory.
try 0 tree STRATA_MCA_rcache_tree_max_bytes=3m many 12
both '12 buffers, twice, 24 registrations, 72 found, 21 evicted, 0 gone, 3145728 bytes, 3145728 at most'
try 0 tree SOFTHCA_MAX_MR=12 many 12
both '12 buffers, twice, [0-9]+ registrations, 72 found, [1-9][0-9]* evicted'
try 0 tree SOFTHCA_MEMLOCK=6m many 12
both '12 buffers, twice, [0-9]+ registrations, 72 found, [1-9][0-9]* evicted'
# Memory by strata_mem_alloc, from a cache that keeps registrations, and from large pages.
for pool in plain hugepage; do
    try 0 tree STRATA_MCA_mpool=$pool alloc 10
    both '10 times from strata_mem_alloc, twice, 2 registrations, 80 found, 0 evicted'
done
# One registration fails, at any time after the start, which makes six.
for n in $(form '7 9' '7 8 9 12'); do
    try 0 tree SOFTHCA_FAULTS="mr $n" many 4
    try 0 none SOFTHCA_FAULTS="mr $n" many 4
done
# In the middle of a message: memory goes away, which its owner must not do; the process forks, and the child may write.
try nonzero none half
both '(success|invalid argument|the peer failed)$'
try 0 none fork
both '4 forks'
finish
