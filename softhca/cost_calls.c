/* Posting and polling with costs. A context has these in place of the others, which so do not have to ask. */
#include "cost.h"

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    hca_cost_pay(HCA_COST_POLL, 1, HCA_COST_POLL, 0);
    return hca_poll_cq(cq, n, wc);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    uint64_t n = 0;

    for (const struct ibv_send_wr *w = wr; w; w = w->next)
        n++;
    hca_cost_pay(HCA_COST_POST_SEND, n, HCA_COST_POST_SEND, 0);
    return hca_post_send(qp, wr, bad);
}

static void pay_receives(const struct ibv_recv_wr *wr)
{
    uint64_t n = 0;

    for (; wr; wr = wr->next)
        n++;
    hca_cost_pay(HCA_COST_POST_RECV, n, HCA_COST_POST_RECV, 0);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    pay_receives(wr);
    return hca_post_recv(qp, wr, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    pay_receives(wr);
    return hca_post_srq_recv(srq, wr, bad);
}

void hca_cost_use(struct ibv_context_ops *ops)
{
    if (hca_cost_is(HCA_COST_POLL))
        ops->poll_cq = poll_cq;
    if (hca_cost_is(HCA_COST_POST_SEND))
        ops->post_send = post_send;
    if (hca_cost_is(HCA_COST_POST_RECV)) {
        ops->post_recv = post_recv;
        ops->post_srq_recv = post_srq_recv;
    }
}
