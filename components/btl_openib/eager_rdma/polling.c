/* Which rings are polled, in which order, and which of them are quiet. Polling itself is in ring_recv.c. */
#include "module.h"

#define IDLE 64u /* reports in a row without a message, after which a ring is quiet */

static void polling_add(struct ib_eager *e, struct ib_ring_in *r, bool quiet)
{
    if (r->peer && r->detect != IB_DETECT_IMM && r->quiet == quiet && e->hot.places[r->place].state != ST_HOT_BROKEN)
        e->polled[e->n_polled++] = r;
}

/* Which rings are polled, and in which order, has changed. */
void ib_polling_ordered(void *arg)
{
    struct ib_module *m = arg;
    struct ib_eager *e = &m->eager;
    const uint32_t *places;
    uint32_t n;

    st_polling_set_order(e->hot.set, &places, &n);
    e->n_polled = 0;
    for (int quiet = 0; quiet < 2; quiet++) {
        if (m->dev.par->eager_rdma_order == IB_POLL_PRIORITISED)
            for (uint32_t i = 0; i < n; i++)
                polling_add(e, &e->rings[places[i]], quiet);
        else
            for (uint32_t i = 0; i < e->hot.n_places; i++)
                polling_add(e, &e->rings[i], quiet);
        if (!quiet)
            e->n_lively = e->n_polled;
    }
    e->first = e->n_lively && m->dev.par->eager_rdma_order != IB_POLL_CIRCULAR ? e->polled[0] : &e->none;
}

/* False: nothing came by it since the last report. */
static bool polling_report(struct ib_eager *e, struct ib_ring_in *r)
{
    if (!r->arrivals) {
        if (r->idle < IDLE)
            r->idle++;
        return false;
    }
    st_hot_arrivals(&e->hot, r->place, r->arrivals);
    r->arrivals = 0;
    r->idle = 0;
    r->quiet = false;
    return true;
}

void ib_eager_report(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;
    uint32_t spared = (uint32_t)m->dev.par->eager_rdma_lively, n = e->n_lively;
    bool changed = false;

    for (uint32_t i = 0; i < e->hot.n_places; i++) {
        struct ib_ring_in *r = &e->rings[i];
        if (r->peer && polling_report(e, r)) {
            e->naps = 0;
            changed = true;
        } else if (r->peer && !r->quiet && r->idle == IDLE && r->detect != IB_DETECT_IMM && n > spared) {
            r->quiet = true;
            n--;
            changed = true;
        }
    }
    if (changed && e->n_polled > 1)
        ib_polling_ordered(m);
}
