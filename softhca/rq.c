/* Receive queues: the owner adds at the tail, whoever delivers takes at the head. */
#include "hca.h"

#include <errno.h>
#include <string.h>

static size_t stride_of(uint32_t max_sge)
{
    return sizeof(struct hca_rwqe) + (size_t)max_sge * sizeof(struct hca_sge);
}

size_t hca_rq_bytes(uint32_t n, uint32_t max_sge)
{
    return (size_t)n * stride_of(max_sge);
}

/* Under the queue's lock. Everything the owner relies on is its own: `own`, `ring` and `n`, not what stands in the
 * segment. */
static int add(struct hca_rq *rq, struct hca_receives *own, char *ring, uint32_t n, uint32_t max_wr, uint32_t max_sge,
               const struct ibv_recv_wr *wr)
{
    uint64_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
    /* Acquire: pairs with the compare-and-swap that took an entry; it had been read before. */
    uint64_t waiting = tail - atomic_load_explicit(&rq->head, memory_order_acquire);
    struct hca_posted what = {.wr_id = wr->wr_id};
    struct hca_rwqe *e = (struct hca_rwqe *)(void *)(ring + (size_t)(tail & (n - 1)) * stride_of(max_sge));

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge)
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        what.room += wr->sg_list[i].length;
    if (wr->num_sge == 1)
        what.only = (struct hca_sge){wr->sg_list[0].addr, wr->sg_list[0].length, wr->sg_list[0].lkey};
    if (waiting >= max_wr || !hca_receive_add(own, &what, &e->id))
        return ENOMEM;
    e->n_sge = (uint32_t)wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++)
        e->sge[i] = (struct hca_sge){wr->sg_list[i].addr, wr->sg_list[i].length, wr->sg_list[i].lkey};
    atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
    return 0;
}

int hca_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct hca_qp_own *qp = (struct hca_qp_own *)ibv;
    uint32_t state = hca_qp_state(qp->shared);
    int rc = qp->srq || state == IBV_QPS_RESET ? EINVAL : 0;

    pthread_mutex_lock(&qp->rq_lock);
    while (rc == 0 && wr) {
        rc = add(&qp->shared->rq, &qp->receives, qp->rq_ring, qp->rq_n, qp->max_recv_wr, qp->max_recv_sge, wr);
        if (rc == 0)
            wr = wr->next;
    }
    pthread_mutex_unlock(&qp->rq_lock);
    if (rc != 0)
        *bad = wr;
    if (hca_qp_state(qp->shared) == IBV_QPS_ERR)
        hca_qp_flush(qp);
    return rc;
}

int hca_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct hca_srq_own *srq = (struct hca_srq_own *)ibv;
    int rc = 0;

    pthread_mutex_lock(&srq->lock);
    while (rc == 0 && wr) {
        rc = add(&srq->shared->rq, &srq->receives, srq->ring, srq->n, srq->max_wr, srq->max_sge, wr);
        if (rc == 0)
            wr = wr->next;
    }
    pthread_mutex_unlock(&srq->lock);
    if (rc != 0)
        *bad = wr;
    return rc;
}

bool hca_rq_take(char *segment, struct hca_rq *rq, uint64_t *id, struct hca_sge sge[HCA_MAX_SGE], uint32_t *n_sge)
{
    uint64_t at = HCA_ONCE(rq->ring), head = atomic_load_explicit(&rq->head, memory_order_relaxed);
    uint32_t n = HCA_ONCE(rq->n), max_sge = HCA_ONCE(rq->max_sge);
    const struct hca_rwqe *e;

    if (n == 0 || (n & (n - 1)) || max_sge > HCA_MAX_SGE || at < HCA_AT_HEAP || at % 8 || at > HCA_SIZE ||
        n * (uint64_t)stride_of(max_sge) > HCA_SIZE - at)
        return false;
    /* Bounded: others take receives while we do not, but not that often. */
    for (int tries = 0; tries < 100000; tries++) {
        if (head == atomic_load_explicit(&rq->tail, memory_order_acquire))
            return false;
        e = (const struct hca_rwqe *)(const void *)(segment + at + (size_t)(head & (n - 1)) * stride_of(max_sge));
        *id = HCA_ONCE(e->id);
        *n_sge = HCA_ONCE(e->n_sge);
        if (*n_sge > max_sge)
            *n_sge = max_sge;
        memcpy(sge, e->sge, *n_sge * sizeof sge[0]);
        /* Release: the owner may write the entry again once it sees the head beyond it. */
        if (atomic_compare_exchange_strong_explicit(&rq->head, &head, head + 1, memory_order_acq_rel,
                                                    memory_order_acquire))
            return true;
    }
    return false;
}
