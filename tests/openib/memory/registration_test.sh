#!/bin/bash
# User memory over btl_openib on softhca: what is kept, what is given up, what goes away meanwhile.
. "$STRATA_SOURCE/tests/openib/memory/registration_lib.sh"
# The same memory again and again: registered once, and found by each half of a message at each end, or each time.
try 0 tree STRATA_MCA_mca_base_report_transports=text again 10
says 'split_min 131072, .*long_messages get and put'
says 'registrations, rcache tree, made 1, found 39, evicted 0, gone [01], bytes [0-9]+, bytes_max 1048576'
both '10 times the same, 1 registrations, 39 found, 0 evicted, 0 gone, 1048576 bytes, 1048576 at most'
try 0 none again 10
both '10 times the same, 20 registrations, 0 found, 0 evicted, 0 gone, 0 bytes, 1048576 at most'
# Memory that may only be read: tried for writing once, then found; a message into it, when it may be written again, is another registration.
try 0 tree constant 10
both '10 times constant, 1 registrations, 19 found, '
grep -qE '^rank 0: 10 times constant, then not, 2 registrations, 22 found, ' "$work/out" || complain "$(cat "$work/out")"
# Memory by strata_mem_alloc is registered there, even where registrations are not kept.
try 0 none alloc 10
both '10 times from strata_mem_alloc, twice, 2 registrations, 40 found, 0 evicted, 0 gone, 0 bytes, 1048576 at most'
# Where shared memory reaches all peers, the adapter beside it registers none of it.
run 0 timeout -k 2 "$job_limit" strata-run --softhca -n 2 --mca btl openib,sm,self --mca rcache tree --mca mca_base_report_transports text \
    "$STRATA_BUILD/tests/programs/registered" unused
both 'nothing registered$'
says 'by sm'
# What stays registered for an embedder's next block goes when other memory needs it: 6 MiB may be locked, 4 MiB are spare.
for cache in tree none; do
    try 0 "$cache" SOFTHCA_MEMLOCK=6m spare 3
    [ ! -s "$work/err" ] || complain "$cache: a spare block is in the way: $(cat "$work/err")"
done
# More buffers than may be registered, by the cache's count.
try 0 tree STRATA_MCA_rcache_tree_max_entries=5 many 12
both '12 buffers, twice, 24 registrations, 72 found, 19 evicted, 0 gone, 5242880 bytes, 5242880 at most'
# In the middle of a message: memory goes away, which its owner must not do; a child is born, which may write.
try nonzero tree half
both '(success|invalid argument|the peer failed)$'
try 0 tree fork
both '4 forks'
# The same counters without a message: of the cache in use only.
run 0 strata-run --softhca -n 1 --mca btl openib,self --mca rcache tree strata-info --counters
for line in 'rcache_tree_hits = 0 times' 'rcache_tree_registered_bytes_max = 0 bytes at most' \
    'rcache_none_hits = - times' 'btl_openib_connected_now = 0 connections now'; do
    grep -qxF "  $line" "$work/out" || complain "strata-info does not say '$line': $(cat "$work/out")"
done
finish
