/* Crowds: bursts of short messages to a peer, which the layer above had better send together. */
#include <strata/sdk/clock.h>
#include "module.h"

uint32_t ib_crowd_from_now(const struct ib_qp *q)
{
    uint32_t most = (uint32_t)ib_module_of(q->peer)->dev.par->coalesce_at;

    return q->credits > most ? q->credits - most : 0;
}

/* Messages sent within this time are a burst. Credits return seldom, so that slow messages without credits are no
 * crowd. */
#define BURST_NS 1000000u

/* The flag is set once until credits come, so that further sends go the usual way. */
__attribute__((noinline)) void ib_crowded(struct ib_qp *q)
{
    struct ib_module *m = ib_module_of(q->peer);
    uint64_t now;
    bool burst;

    if (q->notice_at == 0)
        return;
    q->peer->usual = false;
    now = st_now_ns();
    burst = now - q->noticed_ns < BURST_NS;
    q->noticed_ns = now;
    q->notice_at = burst ? 0 : ib_crowd_from_now(q);
    if (!burst)
        return;
    q->peer->ep.caps |= ST_BTL_CROWDED;
    if (m->credits.crowded_ns == 0)
        m->credits.crowded_ns = now;
}

/* After a burst without credits the messages were probably handled; later ones are no part of it. */
void ib_crowds_end(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    if (now - m->credits.crowded_ns < BURST_NS)
        return;
    m->credits.crowded_ns = 0;
    for (struct ib_peer *p = m->peers.all; p; p = p->next) {
        if (!(p->ep.caps & ST_BTL_CROWDED))
            continue;
        if (now - p->q[IB_HIGH].noticed_ns < BURST_NS)
            m->credits.crowded_ns = now;
        else
            ib_not_crowded(p);
    }
}
