/* Probes of silent peers. A rank that only waits to receive would not learn that its connection is lost: the peer's
 * sends fail at the peer's end. So a peer that sent nothing for keepalive_ms, with nothing in flight to it, gets an
 * RDMA write of no bytes. The device at the other end acknowledges it without the process, which may be stopped; else
 * the request fails as any other. A peer that was asked to close is probed, too: its answer may take as long as its
 * process computes. */
#include <strata/sdk/clock.h>
#include "module.h"

enum { LOOKS = 16 }; /* in keepalive_ms: silence is found a sixteenth of it late at most */

static void keepalive_probe(struct ib_module *m, struct ib_peer *p)
{
    struct ib_qp *q = &p->q[IB_LOW];
    struct ibv_send_wr wr = ib_rdma_wr(q, false, NULL, 0, 0, true);

    if (ib_rdma_post(q, &wr, NULL, IB_SENT_NOTHING) != STRATA_OK)
        return;
    p->seen++; /* a probe does not count as use: conn_evict.c */
    m->count.probes++;
}

void ib_keepalive(struct ib_module *m)
{
    uint64_t every = (uint64_t)m->dev.par->keepalive_ms * 1000000u, now;

    if (every == 0 || m->qps.n_peers == 0 || m->closing)
        return;
    now = st_now_ns();
    if (now < m->conns.keepalive_at)
        return;
    m->conns.keepalive_at = now + every / LOOKS;
    for (struct ib_peer *p = m->peers.all; p; p = p->next) {
        if (p->q[IB_HIGH].ring)
            ib_ring_settle(m, p->q[IB_HIGH].ring);
        uint32_t heard = p->q[IB_HIGH].received + p->q[IB_LOW].received;
        p->quiet = heard == p->heard ? p->quiet + 1 : 0;
        p->heard = heard;
        if (p->quiet < LOOKS)
            continue;
        p->quiet = 0;
        if ((p->state == IB_UP || (p->state == IB_ASKED_TO_CLOSE && !p->up)) && !p->left && !p->error &&
            p->q[IB_LOW].posted == p->q[IB_LOW].done)
            keepalive_probe(m, p);
    }
}
