/* The error state: all that is outstanding comes back, in order, with IBV_WC_WR_FLUSH_ERR. */
#include "hca.h"

static struct hca_cqe flushed(const struct hca_qp_own *qp, uint64_t id, bool is_send)
{
    return (struct hca_cqe){
        .id = id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV, .qp_num = qp->ibv.qp_num, .is_send = is_send};
}

void hca_flush_sends(struct hca_qp_own *qp)
{
    struct hca_peer *self = hca_peer_get(hca.index);

    while (self && qp->sq_next != qp->sq_tail) {
        hca_send_over(qp, true, IBV_WC_WR_FLUSH_ERR);
        struct hca_cqe e = flushed(qp, qp->sq_next, true);
        hca_cq_push(self, qp->send_cq->slot, &e);
    }
    qp->retry_at = 0;
}

/* Under rq_lock. */
static void flush_receives(struct hca_qp_own *qp)
{
    struct hca_peer *self = hca_peer_get(hca.index);
    struct hca_sge sge[HCA_MAX_SGE];
    uint64_t id;
    uint32_t n;

    if (qp->srq || !self)
        return; /* what a shared queue holds is for others */
    /* Bounded by what was posted at most: head and tail are for peers to write. */
    for (uint32_t i = 0; i < qp->rq_n && hca_rq_take(hca.segment, &qp->shared->rq, &id, sge, &n); i++) {
        struct hca_cqe e = flushed(qp, id, false);
        hca_cq_push(self, qp->recv_cq->slot, &e);
    }
}

/* Asked under the lock: whoever resets or destroys the queue pair changes the state first, then takes the locks. */
static bool in_error(const struct hca_qp_own *qp)
{
    return hca_qp_state(qp->shared) == IBV_QPS_ERR;
}

void hca_qp_flush(struct hca_qp_own *qp)
{
    pthread_mutex_lock(&qp->lock);
    if (in_error(qp))
        hca_flush_sends(qp);
    pthread_mutex_unlock(&qp->lock);
    pthread_mutex_lock(&qp->rq_lock);
    if (in_error(qp))
        flush_receives(qp);
    pthread_mutex_unlock(&qp->rq_lock);
}

bool hca_qp_try_flush(struct hca_qp_own *qp)
{
    if (pthread_mutex_trylock(&qp->lock) != 0)
        return false;
    if (in_error(qp))
        hca_flush_sends(qp);
    pthread_mutex_unlock(&qp->lock);
    if (pthread_mutex_trylock(&qp->rq_lock) != 0)
        return false;
    if (in_error(qp))
        flush_receives(qp);
    pthread_mutex_unlock(&qp->rq_lock);
    return true;
}

void hca_qp_break(struct hca_peer *p, struct hca_qp *q, int event)
{
    uint32_t state = atomic_load(&q->state);
    struct hca_header *h = (struct hca_header *)(void *)p->segment;

    do {
        if (state == IBV_QPS_ERR || state == IBV_QPS_RESET)
            return;
    } while (!atomic_compare_exchange_weak(&q->state, &state, IBV_QPS_ERR));
    if (event >= 0)
        hca_async(p, &q->async, q->asynchronous, (enum ibv_event_type)event);
    if (q->srq != HCA_NONE)
        hca_async(p, &q->async, q->asynchronous, IBV_EVENT_QP_LAST_WQE_REACHED);
    atomic_store(&q->attention, 1);
    atomic_store(&h->attention, 1);
    hca_peer_signal(p, h->kick);
}
