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

/* A queue to add to, under its lock. Everything the owner relies on is its own: what stands in the segment is for
 * peers to read. */
struct adding {
    struct hca_rq *rq;
    struct hca_receives *own;
    char *ring;
    uint32_t n, max_wr, max_sge;
};

static bool full(const struct adding *to)
{
    struct hca_receives *own = to->own;

    if (own->added - own->taken >= to->max_wr)
        /* Acquire: pairs with the compare-and-swap that took an entry; it had been read before. */
        own->taken = atomic_load_explicit(&to->rq->head, memory_order_acquire);
    return own->added - own->taken >= to->max_wr;
}

static int add(const struct adding *to, const struct ibv_recv_wr *wr)
{
    struct hca_receives *own = to->own;
    struct hca_posted what = {.wr_id = wr->wr_id};
    struct hca_rwqe *e =
        (struct hca_rwqe *)(void *)(to->ring + (size_t)(own->added & (to->n - 1)) * stride_of(to->max_sge));

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > to->max_sge)
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        what.room += wr->sg_list[i].length;
    if (wr->num_sge == 1)
        what.only = (struct hca_sge){wr->sg_list[0].addr, wr->sg_list[0].length, wr->sg_list[0].lkey};
    if (full(to) || !hca_receive_add(own, &what, &e->id))
        return ENOMEM;
    e->n_sge = (uint32_t)wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++)
        e->sge[i] = (struct hca_sge){wr->sg_list[i].addr, wr->sg_list[i].length, wr->sg_list[i].lkey};
    own->added++;
    return 0;
}

/* Those before one that is refused are posted. */
static int add_all(const struct adding *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int rc = 0;

    while (wr && (rc = add(to, wr)) == 0)
        wr = wr->next;
    /* Once for the list: peers that take receives write this line. Release: pairs with hca_rq_take(). */
    atomic_store_explicit(&to->rq->tail, to->own->added, memory_order_release);
    if (rc != 0)
        *bad = wr;
    return rc;
}

int hca_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct hca_qp_own *qp = (struct hca_qp_own *)ibv;
    uint32_t state = hca_qp_state(qp->shared);
    struct adding to = {&qp->shared->rq, &qp->receives, qp->rq_ring, qp->rq_n, qp->max_recv_wr, qp->max_recv_sge};
    int rc = EINVAL;

    pthread_mutex_lock(&qp->rq_lock);
    if (qp->srq || state == IBV_QPS_RESET)
        *bad = wr;
    else
        rc = add_all(&to, wr, bad);
    pthread_mutex_unlock(&qp->rq_lock);
    if (hca_qp_state(qp->shared) == IBV_QPS_ERR)
        hca_qp_flush(qp);
    return rc;
}

int hca_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct hca_srq_own *srq = (struct hca_srq_own *)ibv;
    struct adding to = {&srq->shared->rq, &srq->receives, srq->ring, srq->n, 0, srq->max_sge};
    int rc;

    pthread_mutex_lock(&srq->lock);
    to.max_wr = srq->max_wr; /* the limit moves: hca_modify_srq */
    rc = add_all(&to, wr, bad);
    pthread_mutex_unlock(&srq->lock);
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
