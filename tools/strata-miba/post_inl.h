/* Posting on an endpoint: part of what is measured, so inline and without choices that a case does not need. */
#ifndef MIBA_POST_INL_H
#define MIBA_POST_INL_H

#include "endpoint.h"

/* A receive on queue pair `qp`, into the buffer that message `i` uses. 0, or an errno value. */
static inline int endpoint_post_recv(struct endpoint *e, unsigned qp, uint32_t i)
{
    struct ibv_recv_wr *bad;

    const uintptr_t at = (uintptr_t)endpoint_rx(e, traffic_buffer(&e->t, i));

    e->rsge[0].addr = at - (e->t.transport == UD ? ENDPOINT_GRH_BYTES : 0);
    if (e->t.scatter > 1)
        for (uint32_t s = 1, part = e->t.size / e->t.scatter; s < e->t.scatter; s++)
            e->rsge[s].addr = at + (uintptr_t)s * part;
    if (e->srq)
        return ibv_post_srq_recv(e->srq, &e->rwr, &bad);
    return ibv_post_recv(e->qp[qp], &e->rwr, &bad);
}

/* The queue pair that a completion names. Messages of several of them do not always come in turn. */
static inline unsigned endpoint_pair_of(const struct endpoint *e, uint32_t number)
{
    unsigned i = e->pair_of[number % PAIR_SLOTS];

    for (; e->qp[i]->qp_num != number && i + 1 < e->pairs; i++)
        ;
    return i;
}

/* The receive that takes the place of the one that was completed last. */
static inline int endpoint_repost(struct endpoint *e, const struct ibv_wc *wc)
{
    const unsigned qp = e->pairs == 1 ? 0 : endpoint_pair_of(e, wc->qp_num);

    return endpoint_post_recv(e, qp, e->depth * e->t.qps + e->received - 1);
}

/* Fills in request `k` of the list for message `i`. */
static inline void post_aim(struct endpoint *e, uint32_t k, uint32_t i, unsigned qp, bool last)
{
    struct ibv_send_wr *wr = &e->wr[k];
    const struct traffic *t = &e->t;

    if (t->buffers > 1) {
        const uint32_t buffer = traffic_buffer(t, i), each = t->size / t->segments;
        for (uint32_t s = 0; s < t->segments; s++)
            e->sge[k][s].addr = (uintptr_t)endpoint_tx(e, buffer) + s * each;
        wr->wr.rdma.remote_addr = e->remote.address + endpoint_offset(e, buffer);
    } else {
        wr->wr.rdma.remote_addr = e->remote.address;
    }
    wr->wr.rdma.rkey = e->remote.rkey;
    if (t->transport == UD) {
        wr->wr.ud.ah = e->ah;
        wr->wr.ud.remote_qpn = e->remote.qpn[qp];
        wr->wr.ud.remote_qkey = ENDPOINT_QKEY;
    } else if (miba_op_is_atomic(t->op)) {
        wr->wr.atomic.remote_addr = e->remote.word;
        wr->wr.atomic.rkey = e->remote.rkey;
        /* Each swap finds what the one before has written. One that finds something else writes nothing. */
        wr->wr.atomic.compare_add = t->op == OP_COMPARE_SWAP ? i : 1;
        wr->wr.atomic.swap = i + 1;
    }
    e->unsignaled++;
    if (last || e->unsignaled >= t->signal_every) {
        wr->send_flags |= IBV_SEND_SIGNALED;
        wr->wr_id = e->unsignaled; /* how many messages the completion stands for */
        e->unsignaled = 0;
    } else {
        wr->send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    }
}

/* Posts the next `n` messages, in lists of up to t.list, each on one queue pair; `last`: the last one makes a
 * completion. 0, or an errno value. */
static inline int endpoint_post(struct endpoint *e, uint32_t n, bool last)
{
    while (n > 0) {
        const uint32_t count = n < e->t.list ? n : e->t.list;
        const unsigned qp = e->sent / (e->t.list * e->t.burst) % e->t.qps;
        struct ibv_send_wr *bad;

        for (uint32_t k = 0; k < count; k++) {
            post_aim(e, k, e->sent + k, qp, last && k + 1 == n);
            e->wr[k].next = k + 1 < count ? &e->wr[k + 1] : NULL;
        }
        const int error = ibv_post_send(e->qp[qp], e->wr, &bad);
        if (error)
            return error;
        e->sent += count;
        n -= count;
    }
    return 0;
}

#endif
