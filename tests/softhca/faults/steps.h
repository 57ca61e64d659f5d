/* What several of these programs do. */
#ifndef SOFTHCA_TESTS_STEPS_H
#define SOFTHCA_TESTS_STEPS_H

#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"

#include <errno.h>

static inline void expect_event(struct device *d, enum ibv_event_type what)
{
    struct ibv_async_event ev;

    event_next(d->ctx, &ev);
    REQUIRE_EQ(ev.event_type, what);
    ibv_ack_async_event(&ev);
}

static inline void send_datagram(struct pair *p, struct ibv_ah *ah, uint64_t id)
{
    struct op op = op_make(&p->a, IBV_WR_SEND, id, 64, 8);

    op_to_ud(&op, ah, p->b.qp->qp_num);
    op_post(&p->a, &op);
}

/* An object of the kind 0 to 4; unmake in limits.c ends it. */
static inline void *make(struct device *d, struct end *e, int kind)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr qp = {
        .send_cq = e->send_cq, .recv_cq = e->recv_cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};

    errno = 0;
    switch (kind) {
    case 0:
        return ibv_create_qp(d->pd, &qp);
    case 1:
        return ibv_reg_mr(d->pd, e->mem.p, 64, IBV_ACCESS_LOCAL_WRITE);
    case 2:
        return ibv_create_cq(d->ctx, 4, NULL, NULL, 0);
    case 3:
        return ibv_create_srq(d->pd, &srq);
    default:
        return ibv_alloc_pd(d->ctx);
    }
}

#endif
