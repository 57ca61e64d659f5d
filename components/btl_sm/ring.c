/* Binding the two sides of a ring to its memory; its counters; a larger data area. */
#include "ring.h"

void sm_ring_tx_init(struct sm_ring_tx *tx, uint8_t *base, const struct sm_geometry *g)
{
    uint64_t c;

    tx->ctl = (struct sm_ring_ctl *)(void *)base;
    tx->desc = (struct sm_desc *)(void *)(base + SM_RING_CTL);
    tx->data = base + sm_ring_data_offset(g);
    tx->shift = (uint8_t)__builtin_ctz(g->ring_slots);
    tx->dmask = tx->most = 0;
    tx->step = tx->asked = 0;
    /* Acquire: pairs with the consumer's release in publish, as in every later reading of the counters. */
    c = atomic_load_explicit(&tx->ctl->consumed, memory_order_acquire);
    tx->end = tx->limit = (uint32_t)c;
    tx->dpos = tx->dlimit = tx->dseen = (uint32_t)(c >> 32);
    tx->left = 0;
    sm_ring_more(tx);
}

bool sm_ring_look(struct sm_ring_tx *tx)
{
    uint64_t c = atomic_load_explicit(&tx->ctl->consumed, memory_order_acquire);
    uint32_t limit = (uint32_t)c + (1u << tx->shift), seen = (uint32_t)(c >> 32), dlimit = tx->dlimit;
    bool moved;

    /* Until the consumer has come to the area in use, what it has read of the one before is no room in this one. */
    if (tx->step && (int32_t)(seen - tx->dseen) >= 0) {
        tx->dseen = seen;
        dlimit = seen + tx->dmask + 1;
    }
    moved = limit != tx->limit || dlimit != tx->dlimit;
    tx->limit = limit;
    tx->dlimit = dlimit;
    return moved;
}

bool sm_ring_more(struct sm_ring_tx *tx)
{
    uint32_t n_desc = 1u << tx->shift, pos = tx->end, at = pos & (n_desc - 1);
    uint32_t room;

    if (tx->left)
        return true;
    sm_ring_look(tx);
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
    c = atomic_load_explicit(&rx->ctl->consumed, memory_order_relaxed); /* our own word */
    rx->pos = rx->published = (uint32_t)c;
    rx->dpos = rx->dpublished = (uint32_t)(c >> 32);
    rx->next = &rx->desc[rx->pos & rx->mask];
    rx->lap = sm_lap(rx->pos, rx->shift);
    sm_ring_rx_begin(rx);
}

void sm_ring_rx_begin(struct sm_ring_rx *rx)
{
    rx->dmask = rx->dlines = 0;
    rx->step = rx->expect = 0;
}

/* The first position from pos on that, in an area of `lines`, lies just behind one of `old` lines. */
static uint32_t ring_behind(uint32_t pos, uint32_t old, uint32_t lines)
{
    return pos + ((old - pos) & (lines - 1));
}

void sm_ring_tx_widen(struct sm_ring_tx *tx, const struct sm_geometry *g, uint32_t step)
{
    uint32_t old = sm_area_bytes(g, tx->step) / SM_LINE, lines = sm_area_bytes(g, step) / SM_LINE;

    tx->dpos = tx->dseen = ring_behind(tx->dpos, old, lines);
    tx->dlimit = tx->dpos + lines - old;
    tx->dmask = lines - 1;
    tx->most = sm_area_most(lines * SM_LINE);
    tx->step = (uint8_t)step;
}

void sm_ring_rx_widen(struct sm_ring_rx *rx, const struct sm_geometry *g, uint32_t step)
{
    uint32_t lines = sm_area_bytes(g, step) / SM_LINE;

    rx->dpos = ring_behind(rx->dpos, rx->dlines, lines);
    rx->dlines = lines;
    rx->dmask = lines - 1;
    rx->step = (uint8_t)step;
}
