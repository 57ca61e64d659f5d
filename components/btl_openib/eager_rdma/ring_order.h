/* Positions in a ring of slots at the receiver. Paper, section 4.4: slots may be freed in any order, and the tail
 * advances over contiguous free ones only. Pure functions. */
#ifndef IB_RING_ORDER_H
#define IB_RING_ORDER_H

#include <stdint.h>

#define IB_SLOTS_MOST 64u

struct ib_ring_order {
    uint64_t freed; /* bit of each slot that was freed, and is not returned yet */
    uint32_t n;     /* slots */
    uint32_t head;  /* slot of the next message */
    uint32_t tail;  /* oldest slot that is not free */
};

static inline uint32_t ib_ring_next(uint32_t slot, uint32_t n)
{
    return slot + 1 == n ? 0 : slot + 1;
}

/* Frees a slot between tail and head: slots that the sender may use again by that. */
static inline uint32_t ib_ring_free(struct ib_ring_order *r, uint32_t slot)
{
    uint32_t n = 0;

    if (slot == r->tail && r->freed == 0) { /* in order */
        r->tail = ib_ring_next(slot, r->n);
        return 1;
    }
    r->freed |= UINT64_C(1) << slot;
    while (r->freed >> r->tail & 1) {
        r->freed &= ~(UINT64_C(1) << r->tail);
        r->tail = ib_ring_next(r->tail, r->n);
        n++;
    }
    return n;
}

#endif
