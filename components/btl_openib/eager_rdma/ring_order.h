/* Slots of a ring that are in use at the receiver. Paper, section 4.4: they may be freed in any order, and the tail
 * advances over contiguous free ones only. A message takes slots in a row, and none beyond the last one. Pure
 * functions. */
#ifndef IB_RING_ORDER_H
#define IB_RING_ORDER_H

#include <stdint.h>

#define IB_SLOTS_MOST 128u

struct ib_ring_order {
    uint64_t freed[IB_SLOTS_MOST / 64]; /* bit of each slot in use that was freed, and is not returned yet */
    uint32_t n;                         /* slots */
    uint32_t tail;                      /* the oldest one in use, if any is */
    uint32_t held;                      /* slots in use */
};

/* A message in k slots from `slot` on, which follows the ones that are in use. */
static inline void ib_ring_take(struct ib_ring_order *r, uint32_t slot, uint32_t k)
{
    if (r->held == 0)
        r->tail = slot;
    r->held += k;
}

/* Frees the slots of a message that was taken: slots that the sender may use again by that. */
static inline uint32_t ib_ring_free(struct ib_ring_order *r, uint32_t slot, uint32_t k)
{
    uint32_t n = 0;

    for (uint32_t i = slot; i < slot + k; i++)
        r->freed[i / 64] |= UINT64_C(1) << i % 64;
    while (r->freed[r->tail / 64] >> r->tail % 64 & 1) {
        r->freed[r->tail / 64] &= ~(UINT64_C(1) << r->tail % 64);
        r->tail = r->tail + 1 == r->n ? 0 : r->tail + 1;
        n++;
    }
    r->held -= n;
    return n;
}

#endif
