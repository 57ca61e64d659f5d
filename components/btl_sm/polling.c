/* Rings for hot peers: strata/sdk/hot_peers.h grants and takes back; this file makes rings ready and writes grant
 * words. A sender is told of a changed word by its next send, or by a nudge in its own shared queue, and ends the ring
 * with a BYE. A ring whose sender has older messages in the shared queue waits for them (polling.h). */
#include "polling.h"
#include "area.h"
#include "ring_inl.h"
#include "senders.h"
#include "sm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Memory for the descriptors and the first data area, at once: the call takes longer than the pages. STRATA_ERR_NOMEM
 * with errno set. */
static int ring_reserve(struct sm_module *m, struct sm_ring_rx *rx)
{
    uint8_t *base = sm_ring_base(m->seg.base, &m->seg.at, rx->index);
    size_t length = sm_ring_data_offset(&m->seg.geometry) + sm_area_bytes(&m->seg.geometry, 1);
    int rc;

    if (rx->reserved)
        return STRATA_OK;
    rc = sm_segment_reserve(&m->seg, (size_t)(base - m->seg.base), length);
    if (rc != STRATA_OK)
        return rc;
    rx->reserved = true;
    sm_segment_enter(base, length);
    sm_ring_rx_init(rx, base, &m->seg.geometry);
    rx->offered = 1;
    atomic_store_explicit(&rx->ctl->offered, 1, memory_order_release); /* as in sm_area_offer */
    return STRATA_OK;
}

void sm_ring_spare(struct sm_module *m)
{
    for (uint32_t i = 0; i < m->hot.n_places && !m->hot.off; i++) {
        if (m->hot.places[i].state == ST_HOT_FREE) { /* the one that is granted next */
            (void)ring_reserve(m, &m->rings[i]);
            return;
        }
    }
}

static int sm_ring_ready(void *arg, uint32_t i, uint32_t local)
{
    struct sm_module *m = arg;
    struct sm_ring_rx *rx = &m->rings[i];
    int rc = ring_reserve(m, rx);

    if (rc == STRATA_OK)
        rc = sm_area_offer(m, rx, sm_area_step(&m->seg.geometry, m->arrival.len));
    if (rc != STRATA_OK) {
        /* The shared queue carries everything as well: slower, not broken. */
        if (m->hot.n_unusable == 0)
            st_log(m->btl.context, ST_LOG_INFO, "btl_sm", "no memory for another ring (%s); the shared queue is used",
                   strerror(errno));
        return rc;
    }
    sm_ring_rx_begin(rx);
    rx->local = local;
    rx->rank = sm_rank_at(m, local);
    rx->arrivals = 0;
    m->count.promoted++;
    return STRATA_OK;
}

static void sm_ring_tell(void *arg, uint32_t local, uint32_t word)
{
    struct sm_module *m = arg;

    /* Release: pairs with the sender's acquire of its word. */
    atomic_store_explicit(&m->dir[local].grant, word, memory_order_release);
}

static void sm_rings_ordered(void *arg)
{
    struct sm_module *m = arg;

    m->n_order = 0;
    for (uint32_t i = 0; i < m->hot.n_order; i++) {
        struct sm_ring_rx *rx = &m->rings[m->hot.order[i]];
        if (!rx->held)
            m->order[m->n_order++] = rx;
    }
}

int sm_rings_open(struct sm_module *m)
{
    static const struct st_hot_ops ops = {.ready = sm_ring_ready, .tell = sm_ring_tell, .ordered = sm_rings_ordered};
    struct st_polling_set_config c = {.max_members = m->seg.geometry.n_rings,
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
    return st_hot_create(&m->hot, &c, m->n_dir, &ops, m);
}

void sm_rings_close(struct sm_module *m)
{
    st_hot_destroy(&m->hot);
    free(m->rings);
    free(m->order);
    m->rings = NULL;
    m->order = NULL;
    m->n_order = 0;
}

/* Nudges are work for progress. */
static void sm_rings_count(struct sm_module *m, uint32_t revoked_before)
{
    m->work += m->hot.n_revoked - revoked_before;
    if (m->hot.n_revoked > revoked_before)
        m->count.revoked++;
}

void sm_shared_arrival(struct sm_module *m, uint32_t local, uint32_t len)
{
    if (!m->hot.set || m->hot.off)
        return;
    m->work += m->n_arrivals == 0;
    m->arrivals[m->n_arrivals++] = (struct sm_arrival){local, len};
    if (m->n_arrivals == SM_ARRIVALS)
        sm_arrivals_tell(m);
}

void sm_arrivals_tell(struct sm_module *m)
{
    uint32_t before = m->hot.n_revoked;

    m->work -= m->n_arrivals != 0;
    for (uint32_t i = 0; i < m->n_arrivals; i++) {
        m->arrival = m->arrivals[i];
        if (m->senders[m->arrival.local].name != 0)
            st_hot_shared_arrival(&m->hot, m->arrival.local);
        sm_rings_count(m, before);
        before = m->hot.n_revoked;
    }
    m->n_arrivals = 0;
}

/* Whether the sender has left the ring: then its messages in the queue may be younger than these. */
static bool sm_ring_ends(const struct sm_ring_rx *rx)
{
    struct sm_ring_rx at = *rx;
    uint64_t word;

    for (uint32_t i = 0; i <= rx->mask && sm_ring_poll(&at, &word); i++) {
        if (word & SM_WORD_BYE)
            return true;
        sm_ring_advance(&at);
    }
    return false;
}

static __attribute__((noinline)) void sm_ring_hold_if_ahead(struct sm_module *m, struct sm_ring_rx *rx)
{
    /* The queue first: who has sent by it after a BYE has written the BYE before. */
    if (!sm_queue_last_of(&m->queue, rx->local, &rx->behind) || sm_ring_ends(rx))
        return;
    rx->held = true;
    m->n_held++;
    m->work++;
    m->count.held++;
    sm_rings_ordered(m);
}

static void sm_ring_let_go(struct sm_module *m, struct sm_ring_rx *rx)
{
    m->n_held -= rx->held;
    m->work -= rx->held;
    rx->held = false;
}

void sm_rings_release(struct sm_module *m)
{
    uint32_t before = m->n_held;

    for (uint32_t i = 0; i < m->n_rings; i++) {
        if (m->rings[i].held && m->queue.head > m->rings[i].behind)
            sm_ring_let_go(m, &m->rings[i]);
    }
    if (m->n_held != before)
        sm_rings_ordered(m);
}

void sm_ring_report(struct sm_module *m, uint32_t ring)
{
    struct sm_ring_rx *rx = &m->rings[ring];

    st_hot_arrivals(&m->hot, ring, rx->arrivals);
    rx->arrivals = 0;
    if (ST_UNLIKELY(sm_queue_waits(&m->queue)))
        sm_ring_hold_if_ahead(m, rx);
}

void sm_ring_left(struct sm_module *m, uint32_t ring)
{
    uint32_t before = m->hot.n_revoked;

    sm_ring_let_go(m, &m->rings[ring]);
    st_hot_left(&m->hot, ring);
    sm_rings_count(m, before);
}

void sm_ring_broken(struct sm_module *m, uint32_t ring)
{
    uint32_t before = m->hot.n_revoked;

    sm_ring_let_go(m, &m->rings[ring]);
    st_hot_broken(&m->hot, ring);
    sm_rings_count(m, before);
}

void sm_ring_give_up(struct sm_module *m, uint32_t ring)
{
    uint32_t before = m->hot.n_revoked;

    st_hot_give_up(&m->hot, ring);
    sm_rings_count(m, before);
}
