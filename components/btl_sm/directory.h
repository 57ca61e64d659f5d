/* Who is who in a segment: an entry for each process that sends to its owner or that the owner sends to. The index of
 * the entry is the sender's name in the owner's shared queue, and where its grant lies.
 *
 * A hash table with open addressing from which nothing is ever taken out, so that whoever inserts a rank, the owner or
 * the process itself, finds the same entry without asking the other; nobody needs to know beforehand who will come.
 * Peers can write it: what the owner reads here it checks once (sm_known in endpoint.c) and then keeps for itself. */
#ifndef SM_DIRECTORY_H
#define SM_DIRECTORY_H

#include <stdatomic.h>
#include <stdint.h>

struct sm_dir_entry {
    _Atomic(uint32_t) rank1; /* rank + 1; 0: free. Written once, by compare-and-swap */
    _Atomic(uint32_t) grant; /* of a ring: written by the owner, read by the process before each send (polling.c) */
};
_Static_assert(sizeof(struct sm_dir_entry) == 8, "the budget of a peer in a segment");

/* The entry of a rank, made if need be; -1 when the table, n entries (a power of two), is full. */
static inline int64_t sm_dir_place(struct sm_dir_entry *dir, uint32_t n, uint32_t rank)
{
    uint32_t at = (rank * 0x9e3779b1u) >> 7;

    for (uint32_t i = 0; i < n; i++, at++) {
        _Atomic(uint32_t) *r = &dir[at & (n - 1)].rank1;
        uint32_t seen = atomic_load_explicit(r, memory_order_relaxed);
        /* Relaxed: the entry carries nothing but the number. */
        if (seen == 0 &&
            atomic_compare_exchange_strong_explicit(r, &seen, rank + 1, memory_order_relaxed, memory_order_relaxed))
            return at & (n - 1);
        if (seen == rank + 1)
            return at & (n - 1);
    }
    return -1;
}

#endif
