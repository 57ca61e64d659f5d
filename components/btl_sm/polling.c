/* Which peers have rings: the polling set decides, this file grants and takes back.
 *
 *   FREE -> GRANTED: the owner reserves the ring's memory, then stores ring and generation in the peer's grant word.
 *   GRANTED -> REVOKED: the owner clears the word and goes on polling the ring.
 *   REVOKED -> FREE: the sender has seen that its word changed, on its next send or when the nudge that the owner
 *                    puts into its shared queue arrives, and has ended the ring with a BYE. Nothing is lost: what was
 *                    sent before the BYE lies before it; nothing is sent twice: the sender changes paths itself. */
#include "polling.h"
#include "ring_inl.h"
#include "senders.h"
#include "sm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(uint32_t) *sm_ring_grant_word(struct sm_module *m, uint32_t local)
{
    return &m->dir[local].grant;
}

int sm_rings_open(struct sm_module *m)
{
    struct st_polling_set_config c = {.max_members = (uint32_t)m->par->rings,
                                      .promote_after = (uint32_t)m->par->promote_after,
                                      .window = (uint32_t)m->par->promote_window};

    m->n_rings = m->seg.geometry.n_rings;
    if (m->n_rings == 0)
        return STRATA_OK;
    m->rings = aligned_alloc(SM_LINE, (m->n_rings * sizeof *m->rings + SM_LINE - 1) / SM_LINE * SM_LINE);
    m->order = calloc(m->n_rings, sizeof(struct sm_ring_rx *));
    if (!m->rings || !m->order)
        return STRATA_ERR_NOMEM;
    memset(m->rings, 0, m->n_rings * sizeof *m->rings);
    for (uint32_t i = 0; i < m->n_rings; i++)
        m->rings[i].index = i;
    c.max_members = m->n_rings;
    return st_polling_set_create(&c, m->n_dir, &m->set);
}

void sm_rings_close(struct sm_module *m)
{
    if (m->set)
        st_polling_set_destroy(m->set);
    free(m->rings);
    free(m->order);
    m->set = NULL;
    m->rings = NULL;
    m->order = NULL;
    m->n_order = 0;
}

/* Takes the order of polling from the set. Revoked rings are still members there, until their BYE. */
static void sm_rings_reorder(struct sm_module *m)
{
    const uint32_t *slots;
    uint32_t n, k = 0;

    st_polling_set_order(m->set, &slots, &n);
    for (uint32_t i = 0; i < n && k < m->n_rings; i++) {
        if (slots[i] < m->n_rings && m->rings[slots[i]].state != SM_RING_BROKEN)
            m->order[k++] = &m->rings[slots[i]];
    }
    m->n_order = k;
}

static void sm_ring_grant(struct sm_module *m, uint32_t i, uint32_t local)
{
    struct sm_ring_rx *rx = &m->rings[i];
    uint8_t *base = sm_ring_base(m->seg.base, &m->seg.at, i);

    if (rx->state != SM_RING_FREE)
        return;
    if (!rx->reserved) {
        if (sm_segment_reserve(&m->seg, (size_t)(base - m->seg.base), m->seg.at.ring_stride) != STRATA_OK) {
            /* The shared queue carries everything as well: slower, not broken. */
            st_log(m->btl.context, ST_LOG_INFO, "btl_sm", "no memory for another ring (%s); the shared queue is used",
                   strerror(errno));
            m->rings_off = true;
            return;
        }
        rx->reserved = true;
        sm_ring_rx_init(rx, base, &m->seg.geometry);
    }
    rx->local = local;
    rx->rank = sm_rank_at(m, local);
    rx->state = SM_RING_GRANTED;
    rx->arrivals = 0;
    m->generation = (m->generation + 1) & 0x7fffu;
    m->count.promoted++;
    st_polling_set_joined(m->set, local, i);
    sm_rings_reorder(m);
    /* Release: pairs with the sender's acquire of its word. */
    atomic_store_explicit(sm_ring_grant_word(m, local), m->generation << 16 | (i + 1), memory_order_release);
}

static void sm_ring_revoke(struct sm_module *m, uint32_t i)
{
    struct sm_ring_rx *rx = &m->rings[i];

    if (rx->state != SM_RING_GRANTED)
        return;
    atomic_store_explicit(sm_ring_grant_word(m, rx->local), 0, memory_order_release);
    rx->state = SM_RING_REVOKED;
    rx->nudged = false;
    m->n_revoked++;
    m->work++;
    m->count.revoked++;
}

void sm_shared_arrival(struct sm_module *m, uint32_t local)
{
    uint32_t slot = 0;

    if (!m->set || m->rings_off || m->senders[local].name == 0)
        return;
    switch (st_polling_set_shared_arrival(m->set, local, &slot)) {
    case ST_POLL_PROMOTE:
        if (slot < m->n_rings)
            sm_ring_grant(m, slot, local);
        break;
    case ST_POLL_EVICT:
        if (slot < m->n_rings)
            sm_ring_revoke(m, slot);
        break;
    case ST_POLL_STAY:
        break;
    }
}

void sm_ring_report(struct sm_module *m, uint32_t ring)
{
    st_polling_set_ring_arrival(m->set, ring, m->rings[ring].arrivals);
    m->rings[ring].arrivals = 0;
}

static void sm_ring_stop_waiting(struct sm_module *m, struct sm_ring_rx *rx)
{
    if (rx->state != SM_RING_REVOKED)
        return;
    m->n_revoked--;
    m->work--;
}

void sm_ring_left(struct sm_module *m, uint32_t ring)
{
    struct sm_ring_rx *rx = &m->rings[ring];

    /* A sender that disconnects leaves without being asked. */
    atomic_store_explicit(sm_ring_grant_word(m, rx->local), 0, memory_order_release);
    sm_ring_stop_waiting(m, rx);
    rx->state = SM_RING_FREE;
    st_polling_set_left(m->set, ring);
    sm_rings_reorder(m);
}

void sm_ring_broken(struct sm_module *m, uint32_t ring)
{
    struct sm_ring_rx *rx = &m->rings[ring];

    atomic_store_explicit(sm_ring_grant_word(m, rx->local), 0, memory_order_release);
    sm_ring_stop_waiting(m, rx);
    rx->state = SM_RING_BROKEN; /* stays a member of the set, so that nobody else is given its memory */
    sm_rings_reorder(m);
}
