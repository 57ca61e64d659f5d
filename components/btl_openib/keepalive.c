/* Whether those that say nothing are still there. A rank that only waits to receive would not learn that its connection
 * is lost: the peer's sends fail at the peer's end. So a peer that has not been heard of for keepalive_ms, and that
 * nothing is on its way to, gets an RDMA write of no bytes: the device at the other end answers it, without the
 * process, which may be stopped; when it does not, the request fails as any other would. So does one that has been
 * asked to close: its answer may take as long as its process computes. */
#include "openib.h"

static void probe(struct ib_module *m, struct ib_peer *p)
{
    struct ib_qp *q = &p->q[IB_LOW];
    struct ibv_send_wr wr = {.wr_id = ib_wr_id(q), .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    if (ibv_post_send(q->qp, &wr, &bad) != 0)
        return;
    ib_posted(q, NULL, IB_SENT_NOTHING);
    ib_expect_low(m);
    p->seen++; /* is no use of the connection: teardown.c */
    m->count.probes++;
}

void ib_keepalive(struct ib_module *m)
{
    uint64_t every = (uint64_t)m->par->keepalive_ms * 1000000u, now;

    if (every == 0 || m->n_up == 0 || m->closing)
        return;
    now = st_now_ns();
    if (now < m->keepalive_at)
        return;
    m->keepalive_at = now + every;
    for (struct ib_peer *p = m->all; p; p = p->next) {
        uint32_t heard = p->q[IB_HIGH].received + p->q[IB_LOW].received;
        bool silent = heard == p->heard;
        p->heard = heard;
        if ((p->state == IB_UP || (p->state == IB_ASKED_TO_CLOSE && !p->up)) && silent && !p->left && !p->error &&
            p->q[IB_LOW].posted == p->q[IB_LOW].done)
            probe(m, p);
    }
}
