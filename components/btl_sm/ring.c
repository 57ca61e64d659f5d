/* Binding the two sides of a ring to its memory. */
#include "ring.h"

void sm_ring_tx_init(struct sm_ring_tx *tx, uint8_t *base, const struct sm_geometry *g)
{
    uint64_t c;

    tx->ctl = (struct sm_ring_ctl *)(void *)base;
    tx->desc = (struct sm_desc *)(void *)(base + SM_RING_CTL);
    tx->data = base + sm_ring_data_offset(g);
    tx->mask = g->ring_slots - 1;
    tx->shift = (uint32_t)__builtin_ctz(g->ring_slots);
    tx->dmask = g->ring_data / SM_LINE - 1;
    /* Acquire: pairs with the consumer's release in publish, as in every later reading of the counters. */
    c = atomic_load_explicit(&tx->ctl->consumed, memory_order_acquire);
    tx->pos = (uint32_t)c;
    tx->limit = tx->pos + g->ring_slots;
    tx->dpos = (uint32_t)(c >> 32);
    tx->dlimit = tx->dpos + tx->dmask + 1;
}

void sm_ring_rx_init(struct sm_ring_rx *rx, uint8_t *base, const struct sm_geometry *g)
{
    rx->ctl = (struct sm_ring_ctl *)(void *)base;
    rx->desc = (struct sm_desc *)(void *)(base + SM_RING_CTL);
    rx->data = base + sm_ring_data_offset(g);
    rx->mask = g->ring_slots - 1;
    rx->shift = (uint32_t)__builtin_ctz(g->ring_slots);
    rx->dmask = g->ring_data / SM_LINE - 1;
}
