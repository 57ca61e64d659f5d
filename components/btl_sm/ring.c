/* Binding the two sides of a ring to its memory. */
#include "ring.h"

void sm_ring_tx_init(struct sm_ring_tx *tx, uint8_t *base, const struct sm_geometry *g)
{
    uint64_t c;

    tx->ctl = (struct sm_ring_ctl *)(void *)base;
    tx->desc = (struct sm_desc *)(void *)(base + SM_RING_CTL);
    tx->data = base + sm_ring_data_offset(g);
    tx->shift = (uint8_t)__builtin_ctz(g->ring_slots);
    tx->dmask = g->ring_data / SM_LINE - 1;
    /* Acquire: pairs with the consumer's release in publish, as in every later reading of the counters. */
    c = atomic_load_explicit(&tx->ctl->consumed, memory_order_acquire);
    tx->end = (uint32_t)c;
    tx->dpos = (uint32_t)(c >> 32);
    tx->left = 0;
    sm_ring_more(tx);
}

bool sm_ring_more(struct sm_ring_tx *tx)
{
    uint32_t n_desc = 1u << tx->shift, pos = tx->end, at = pos & (n_desc - 1);
    uint64_t c = atomic_load_explicit(&tx->ctl->consumed, memory_order_acquire);
    uint32_t room;

    if (tx->left)
        return true;
    tx->limit = (uint32_t)c + n_desc;
    tx->dlimit = (uint32_t)(c >> 32) + tx->dmask + 1;
    room = tx->limit - pos;
    if (room == 0 || room > n_desc) /* more than all: the peer wrote nonsense */
        return false;
    if (room > n_desc - at)
        room = n_desc - at;
    tx->next = &tx->desc[at];
    tx->lap = sm_lap(pos, tx->shift);
    tx->left = room;
    tx->end = pos + room;
    return true;
}

void sm_ring_rx_init(struct sm_ring_rx *rx, uint8_t *base, const struct sm_geometry *g)
{
    uint64_t c;

    rx->ctl = (struct sm_ring_ctl *)(void *)base;
    rx->desc = (struct sm_desc *)(void *)(base + SM_RING_CTL);
    rx->data = base + sm_ring_data_offset(g);
    rx->mask = g->ring_slots - 1;
    rx->shift = (uint32_t)__builtin_ctz(g->ring_slots);
    rx->dmask = g->ring_data / SM_LINE - 1;
    c = atomic_load_explicit(&rx->ctl->consumed, memory_order_relaxed); /* our own word */
    rx->pos = rx->published = (uint32_t)c;
    rx->dpos = rx->dpublished = (uint32_t)(c >> 32);
    rx->next = &rx->desc[rx->pos & rx->mask];
    rx->lap = sm_lap(rx->pos, rx->shift);
}
