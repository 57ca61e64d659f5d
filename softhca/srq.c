/* Shared receive queues. */
#include "hca.h"

#include <errno.h>
#include <stdlib.h>

static int publish(struct hca_srq_own *srq, struct ibv_pd *pd)
{
    static uint32_t hint, generation;
    uint32_t limit = hca.limits.max_srq < HCA_SRQS ? hca.limits.max_srq : HCA_SRQS;
    uint32_t slot = hca_slot_find((void *const *)hca.srq, limit, &hint);
    struct hca_srq *s;
    uint64_t at;

    if (slot == HCA_NONE)
        return ENOMEM;
    srq->bytes = hca_rq_bytes(srq->n, srq->max_sge);
    at = hca_heap_alloc(srq->bytes);
    if (at == 0)
        return ENOMEM;
    s = srq->shared = hca_srq_at(hca.segment, slot);
    srq->slot = slot;
    srq->ring = hca.segment + at;
    s->rq.ring = at;
    s->rq.n = srq->n;
    s->rq.max_sge = srq->max_sge;
    atomic_store(&s->rq.head, 0);
    atomic_store(&s->rq.tail, 0);
    atomic_store(&s->limit, 0);
    atomic_store(&s->async, 0);
    s->pd = ((struct hca_pd_own *)pd)->number;
    s->context = hca_context(pd->context)->number;
    s->asynchronous = hca_context(pd->context)->asynchronous;
    s->bytes = (uint32_t)(srq->bytes + 256);
    hca.srq[slot] = srq;
    atomic_fetch_add(&hca.header->bytes_adapter, s->bytes);
    hca_top_raise(&hca.top_srq, &hca.header->top_srq, slot);
    atomic_store_explicit(&s->generation, ++generation ? generation : ++generation, memory_order_release);
    return 0;
}

struct ibv_srq *hca_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    struct hca_srq_own *srq;
    int rc;

    if (hca_device_gone(hca_context(pd->context)->device->index)) {
        errno = EIO;
        return NULL;
    }
    if (a->attr.max_wr == 0 || a->attr.max_wr > hca.limits.max_srq_wr || a->attr.max_sge > hca.limits.max_sge) {
        errno = EINVAL;
        return NULL;
    }
    srq = hca_fault_now(HCA_FAULT_SRQ) ? NULL : calloc(1, sizeof *srq);
    if (!srq) {
        errno = ENOMEM;
        return NULL;
    }
    srq->max_wr = a->attr.max_wr;
    srq->max_sge = a->attr.max_sge ? a->attr.max_sge : 1;
    srq->n = hca_pow2(srq->max_wr);
    if (!hca_receives_make(&srq->receives, srq->n)) {
        free(srq);
        errno = ENOMEM;
        return NULL;
    }
    srq->ibv.context = pd->context;
    srq->ibv.pd = pd;
    srq->ibv.srq_context = a->srq_context;
    srq->ibv.handle = HCA_NONE;
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    pthread_mutex_init(&srq->lock, NULL);
    pthread_mutex_lock(&hca.lock);
    rc = publish(srq, pd);
    pthread_mutex_unlock(&hca.lock);
    if (rc != 0) {
        hca_receives_free(&srq->receives);
        free(srq);
        errno = rc;
        return NULL;
    }
    atomic_fetch_add(&((struct hca_pd_own *)pd)->users, 1);
    a->attr.max_wr = srq->max_wr;
    a->attr.max_sge = srq->max_sge;
    return &srq->ibv;
}

/* The ring stays as it was made; the limit within it moves. */
static int resize(const struct hca_srq_own *srq, uint32_t max_wr)
{
    return max_wr <= srq->n ? 0 : EOPNOTSUPP;
}

int hca_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *a, int mask)
{
    struct hca_srq_own *srq = (struct hca_srq_own *)ibv;
    int rc = 0;

    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return EINVAL;
    pthread_mutex_lock(&srq->lock);
    if (mask & IBV_SRQ_MAX_WR) {
        uint64_t waiting = atomic_load(&srq->shared->rq.tail) - atomic_load(&srq->shared->rq.head);
        if (a->max_wr == 0 || a->max_wr > hca.limits.max_srq_wr || a->max_wr < waiting)
            rc = EINVAL;
        else
            rc = resize(srq, a->max_wr);
        if (rc == 0)
            srq->max_wr = a->max_wr;
    }
    if (rc == 0 && (mask & IBV_SRQ_LIMIT)) {
        if (a->srq_limit > srq->max_wr)
            rc = EINVAL;
        else
            atomic_store(&srq->shared->limit, a->srq_limit);
        hca_srq_look(hca_peer_get(hca.index), srq->shared); /* it may be below already */
    }
    pthread_mutex_unlock(&srq->lock);
    return rc;
}

int hca_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *a)
{
    struct hca_srq_own *srq = (struct hca_srq_own *)ibv;

    *a = (struct ibv_srq_attr){
        .max_wr = srq->max_wr, .max_sge = srq->max_sge, .srq_limit = atomic_load(&srq->shared->limit)};
    return 0;
}

int hca_destroy_srq(struct ibv_srq *ibv)
{
    struct hca_srq_own *srq = (struct hca_srq_own *)ibv;

    if (atomic_load(&srq->users) > 0)
        return EBUSY;
    pthread_mutex_lock(&hca.lock);
    atomic_store(&srq->shared->generation, 0);
    hca.srq[srq->slot] = NULL;
    hca_async_forget(ibv->context, &srq->shared->async);
    hca_heap_free((uint64_t)(srq->ring - hca.segment), srq->bytes);
    atomic_fetch_sub(&hca.header->bytes_adapter, srq->shared->bytes);
    pthread_mutex_unlock(&hca.lock);
    pthread_mutex_lock(&ibv->mutex);
    while (ibv->events_completed != srq->fetched_async)
        pthread_cond_wait(&ibv->cond, &ibv->mutex);
    pthread_mutex_unlock(&ibv->mutex);
    atomic_fetch_sub(&((struct hca_pd_own *)ibv->pd)->users, 1);
    hca_receives_free(&srq->receives);
    free(srq);
    return 0;
}
