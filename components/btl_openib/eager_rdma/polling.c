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
    e->n_polled = e->n_imm = 0;
    e->reorder = false;
    for (uint32_t i = 0; i < e->hot.n_places; i++)
        e->n_imm += e->rings[i].peer && e->rings[i].detect == IB_DETECT_IMM;
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
    uint32_t n = r->arrivals + r->taken;

    if (n == 0) {
        if (r->idle < IDLE)
            r->idle++;
        return false;
    }
    e->reorder |= st_hot_arrivals(&e->hot, r->place, n);
    e->idle_ns = 0;
    r->arrivals -= n;
    r->idle = 0;
    return true;
}

/* A quiet ring has nothing to report: the poll that finds a message there makes it lively. The coldest ones become
 * quiet first. */
void ib_eager_report(struct ib_module *m)
{
    struct ib_eager *e = &m->eager;
    uint32_t spared = (uint32_t)m->dev.par->eager_rdma_lively, n = e->n_lively;

    for (uint32_t i = e->n_lively; i-- > 0;) {
        struct ib_ring_in *r = e->polled[i];
        if (!polling_report(e, r) && r->idle == IDLE && n > spared) {
            r->quiet = true;
            n--;
            e->reorder = true;
        }
    }
    for (uint32_t i = 0; e->n_imm && i < e->hot.n_places; i++)
        if (e->rings[i].peer && e->rings[i].detect == IB_DETECT_IMM)
            (void)polling_report(e, &e->rings[i]);
    if (e->reorder)
        ib_polling_ordered(m);
}
