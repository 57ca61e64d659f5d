/* Progress beside the completions of high priority, and getting ready to sleep. */
#include <strata/sdk/clock.h>
#include "module.h"

#define DRAIN_AT   1000 /* polls in which the BYE of a peer is looked for before it counts as failed */
#define ASYNC_MASK 31u  /* rare looks (IB_RARE) between two for asynchronous events */

/* The BYE of a peer came before the error that its end caused, but by the other queue. */
static __attribute__((noinline)) void rest_broken(struct ib_module *m)
{
    for (int i = 0, n = 1; i < DRAIN_AT && n > 0; i++)
        n = ib_rings_poll(m) + (m->poll.stashed ? ib_unstash(m) : ib_poll_high(m));
    ib_report_broken(m);
}

static void rest_device(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    ib_async_poll(m);
    for (uint32_t i = 0; i < IB_PRIORITIES; i++)
        ib_srq_limits_look(&m->q[i], now);
    ib_keepalive(m);
    ib_eager_refresh(m);
}

/* All but the completions of high priority: at once where ib_attend was called, else after a few polls. */
int ib_progress_rest(struct ib_module *m, int n)
{
    bool rare = !m->poll.attend || ++m->poll.looks % IB_RARE_LOOKS == 0;
    bool low = rare || !m->poll.again || m->poll.low_soon || m->poll.stashed || m->conns.n_closing; /* credits.h */

    if (m->poll.stashed) {
        n += ib_unstash(m);
        n += m->qps.n_peers ? ib_poll_high(m) : 0;
    }
    if (low && m->qps.n_peers)
        n += ib_poll_low(m);
    for (uint32_t i = 0; rare && i < IB_PRIORITIES; i++)
        if (m->q[i].n_again)
            ib_srq_fill(&m->q[i]);
    if (m->credits.owing)
        ib_send_credits(m);
    if (m->eager.unsaid)
        ib_eager_say(m);
    if (rare && m->eager.on)
        ib_eager_report(m);
    if (!st_list_empty(&m->rdma.waiting))
        ib_rdma_progress(m);
    if (m->peers.broken)
        rest_broken(m);
    if (m->conns.n_closing) {
        if (m->poll.stashed) /* by sends since */
            n += ib_unstash(m);
        ib_close_progress(m);
    }
    if (rare && m->credits.crowded_ns)
        ib_crowds_end(m);
    if (rare)
        m->registrar.cache->ops->apply(m->registrar.cache);
    if (rare || !st_list_empty(&m->conns.pending)) {
        n += ib_methods_poll(m);
        if (!st_list_empty(&m->conns.pending))
            ib_wire_up_timers(m);
    }
    if (rare && (++m->poll.rare & ASYNC_MASK) == 0)
        rest_device(m);
    m->poll.again = m->poll.stashed || m->poll.low_soon || m->credits.owing || m->peers.broken || m->conns.n_closing ||
                    m->eager.unsaid || !st_list_empty(&m->rdma.waiting) || !st_list_empty(&m->conns.pending);
    m->poll.attend = m->poll.again;
    m->poll.until = m->poll.again ? 1 : IB_RARE;
    return n;
}

int ib_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct ib_module *m = ib_module(btl);
    struct ibv_cq *cq;
    void *context;
    bool armed = true;

    /* The timers of connections in the making are longer than a sleep. */
    if (m->poll.stashed || m->credits.owing || m->peers.broken || ib_close_polls(m) || ib_rings_wait(m))
        return STRATA_ERR_AGAIN;
    rest_device(m);
    w->deaf = ib_eager_arm(m);
    while (ibv_get_cq_event(m->dev.channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        if (m->q[i].n_again)
            ib_srq_fill(&m->q[i]);
        armed = ibv_req_notify_cq(m->q[i].cq, 0) == 0;
        if (!armed) /* what has been found holds all the same */
            break;
        /* Completions from before the request make no event. */
        m->poll.stash[i].n = ibv_poll_cq(m->q[i].cq, IB_POLLED, m->poll.stash[i].wc);
        if (m->poll.stash[i].n < 0)
            m->poll.stash[i].n = 0;
        m->poll.stash[i].at = 0;
        m->poll.stashed |= m->poll.stash[i].n > 0;
    }
    if (m->poll.stashed) {
        ib_attend(&m->poll);
        m->poll.hot = false;
    }
    if (!armed || m->poll.stashed || ib_methods_arm(m) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    w->fd = m->oob.wait_fd >= 0 ? m->oob.wait_fd : m->dev.channel->fd;
    return STRATA_OK;
}

void ib_disarm(struct st_btl *btl)
{
    (void)btl; /* events that are left are taken by the next arm */
}
