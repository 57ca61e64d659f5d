/* Queue pairs: making, asking, destroying. */
#include "cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Its parts belong to one context, as the kernel has it. They may even be of another library's device. */
static bool of_one(const struct ibv_context *c, const struct ibv_qp_init_attr *a)
{
    return a->send_cq->context == c && a->recv_cq->context == c && (!a->srq || a->srq->context == c);
}

static bool sane(const struct ibv_context *context, const struct ibv_qp_init_attr *a)
{
    const struct ibv_qp_cap *c = &a->cap;
    const struct hca_limits *l = &hca.limits;

    return a->send_cq && a->recv_cq && of_one(context, a) && c->max_send_wr <= l->max_qp_wr &&
           c->max_recv_wr <= l->max_qp_wr && c->max_send_sge <= l->max_sge && c->max_recv_sge <= l->max_sge &&
           c->max_inline_data <= l->max_inline;
}

static bool known_type(enum ibv_qp_type type)
{
    return type == IBV_QPT_RC || type == IBV_QPT_UC || (type == IBV_QPT_UD && !hca.limits.no_datagrams);
}

static void set_sizes(struct hca_qp_own *qp, const struct ibv_qp_init_attr *a)
{
    const uint32_t asked = a->cap.max_inline_data;
    size_t lists, room;

    qp->max_send_wr = a->cap.max_send_wr;
    qp->max_send_sge = a->cap.max_send_sge ? a->cap.max_send_sge : 1;
    qp->max_recv_wr = a->srq ? 0 : a->cap.max_recv_wr;
    qp->max_recv_sge = a->srq ? 0 : a->cap.max_recv_sge ? a->cap.max_recv_sge : 1;
    qp->sq_n = hca_pow2(qp->max_send_wr ? qp->max_send_wr : 1);
    lists = (size_t)qp->max_send_sge * sizeof(struct hca_sge);
    qp->sq_stride = (uint32_t)((sizeof(struct hca_swqe) + (lists > asked ? lists : asked) + 15u) & ~15u);
    /* As devices do: all that an entry has room for. Programs that asked for none rely on it. */
    room = qp->sq_stride - sizeof(struct hca_swqe);
    qp->max_inline = room < hca.limits.max_inline ? (uint32_t)room : hca.limits.max_inline;
    qp->rq_n = qp->max_recv_wr ? hca_pow2(qp->max_recv_wr) : 0;
    qp->rq_bytes = hca_rq_bytes(qp->rq_n, qp->max_recv_sge);
}

/* A device that is used by others, too, has less to give than it says. Under hca.lock. */
static bool too_many(void)
{
    uint32_t most = atomic_load(&hca_trouble.qp_most), living = 0;

    for (uint32_t i = 0; most && i < atomic_load(&hca.top_qp); i++)
        living += hca.qp[i] != NULL;
    return most && living >= most;
}

/* Under hca.lock. */
static int publish(struct hca_qp_own *qp, struct ibv_context *c)
{
    static uint32_t hint, generation;
    uint32_t limit = hca.limits.max_qp < HCA_QPS ? hca.limits.max_qp : HCA_QPS;
    uint32_t slot = hca_slot_find((void *const *)hca.qp, limit, &hint);
    struct hca_qp *s;
    uint64_t at = 0;

    if (too_many()) {
        atomic_fetch_add(&hca_tally.qp_refused, 1);
        return ENOMEM;
    }
    if (slot == HCA_NONE)
        return ENOMEM;
    if (qp->rq_n && (at = hca_heap_alloc(qp->rq_bytes)) == 0)
        return ENOMEM;
    s = qp->shared = hca_qp_at(hca.segment, slot);
    /* All but `users`: a peer may be looking at the one that was here before, and takes back what it added. */
    memset(s, 0, offsetof(struct hca_qp, users));
    memset((char *)s + offsetof(struct hca_qp, attention), 0, sizeof *s - offsetof(struct hca_qp, attention));
    qp->slot = slot;
    qp->rq_ring = at ? hca.segment + at : NULL;
    qp->ibv.qp_num = hca_qpn(hca.index, slot);
    s->rq.ring = at;
    s->rq.n = qp->rq_n;
    s->rq.max_sge = qp->max_recv_sge;
    s->type = qp->type;
    s->pd = qp->pd->number;
    s->recv_cq = qp->recv_cq->slot;
    s->srq = qp->srq ? qp->srq->slot : HCA_NONE;
    s->context = hca_context(c)->number;
    s->asynchronous = hca_context(c)->asynchronous;
    s->device = (uint8_t)hca_context(c)->device->index;
    /* What an adapter and its driver take: the rings, and a context of a kilobyte or so. */
    s->bytes = (uint32_t)((size_t)qp->sq_n * qp->sq_stride + qp->rq_bytes + 1024);
    hca.qp[slot] = qp;
    /* Release: who polls finds the queue pair. */
    atomic_store_explicit(&hca.cqs_of[slot].send, (uint16_t)(qp->send_cq->slot + 1), memory_order_release);
    atomic_store_explicit(&hca.cqs_of[slot].recv, (uint16_t)(qp->recv_cq->slot + 1), memory_order_release);
    atomic_fetch_add(&hca.header->bytes_adapter, s->bytes);
    hca_top_raise(&hca.top_qp, &hca.header->top_qp, slot);
    atomic_store(&s->state, IBV_QPS_RESET);
    atomic_store_explicit(&s->generation, ++generation ? generation : ++generation, memory_order_release);
    return 0;
}

static void use_parts(struct hca_qp_own *qp, int by)
{
    atomic_fetch_add(&qp->pd->users, (uint32_t)by);
    atomic_fetch_add(&qp->send_cq->users, (uint32_t)by);
    atomic_fetch_add(&qp->recv_cq->users, (uint32_t)by);
    if (qp->srq)
        atomic_fetch_add(&qp->srq->users, (uint32_t)by);
}

void hca_sends_forget(struct hca_qp_own *qp)
{
    for (uint32_t i = qp->sq_next; qp->type == IBV_QPT_UD && i != qp->sq_tail; i++)
        hca_ah_let_go(hca_swqe_at(qp, i)->handle);
}

static void release(struct hca_qp_own *qp)
{
    if (!qp)
        return;
    hca_sends_forget(qp);
    hca_receives_free(&qp->receives);
    hca_sq_free(qp);
    free(qp);
}

struct ibv_qp *hca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    struct hca_qp_own *qp;
    int rc;

    if (hca_device_gone(hca_context(pd->context)->device->index)) {
        errno = EIO;
        return NULL;
    }
    if (!known_type(a->qp_type) || !sane(pd->context, a)) {
        errno = known_type(a->qp_type) ? EINVAL : EOPNOTSUPP;
        return NULL;
    }
    qp = hca_fault_now(HCA_FAULT_QP) ? NULL : calloc(1, sizeof *qp);
    if (qp)
        set_sizes(qp, a);
    if (!qp || hca_sq_make(qp) != 0 || !hca_receives_make(&qp->receives, qp->max_recv_wr)) {
        release(qp);
        errno = ENOMEM;
        return NULL;
    }
    qp->type = a->qp_type;
    qp->sq_sig_all = a->sq_sig_all;
    qp->pd = (struct hca_pd_own *)pd;
    qp->send_cq = (struct hca_cq_own *)a->send_cq;
    qp->recv_cq = (struct hca_cq_own *)a->recv_cq;
    qp->srq = (struct hca_srq_own *)a->srq;
    qp->ibv = (struct ibv_qp){.context = pd->context,
                              .qp_context = a->qp_context,
                              .pd = pd,
                              .send_cq = a->send_cq,
                              .recv_cq = a->recv_cq,
                              .srq = a->srq,
                              .state = IBV_QPS_RESET,
                              .qp_type = a->qp_type};
    pthread_mutex_init(&qp->ibv.mutex, NULL);
    pthread_cond_init(&qp->ibv.cond, NULL);
    pthread_mutex_init(&qp->lock, NULL);
    pthread_mutex_init(&qp->rq_lock, NULL);
    rc = hca_engine_start();
    if (rc == 0) {
        pthread_mutex_lock(&hca.lock);
        rc = publish(qp, pd->context);
        pthread_mutex_unlock(&hca.lock);
    }
    if (rc != 0) {
        release(qp);
        errno = rc;
        return NULL;
    }
    use_parts(qp, 1);
    a->cap = (struct ibv_qp_cap){.max_send_wr = qp->max_send_wr,
                                 .max_recv_wr = qp->max_recv_wr,
                                 .max_send_sge = qp->max_send_sge,
                                 .max_recv_sge = qp->max_recv_sge,
                                 .max_inline_data = qp->max_inline};
    qp->init = *a;
    hca_cost_pay(HCA_COST_QP, 1, HCA_COST_QP_ENTRY, (uint64_t)qp->max_send_wr + qp->max_recv_wr);
    return &qp->ibv;
}

int hca_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
    struct hca_qp_own *qp = (struct hca_qp_own *)ibv;
    enum ibv_qp_state state = (enum ibv_qp_state)hca_qp_state(qp->shared);

    (void)mask; /* more may be answered than was asked for */
    pthread_mutex_lock(&qp->lock);
    *a = qp->attr;
    a->qp_state = a->cur_qp_state = ibv->state = state;
    a->cap = qp->init.cap;
    a->sq_draining = state == IBV_QPS_SQD && qp->retry_at != 0;
    pthread_mutex_unlock(&qp->lock);
    *init = qp->init;
    return 0;
}

int hca_destroy_qp(struct ibv_qp *ibv)
{
    struct hca_qp_own *qp = (struct hca_qp_own *)ibv;

    /* From here on nobody finds it; then nobody is left who had. */
    atomic_store(&qp->shared->state, IBV_QPS_RESET);
    atomic_store(&qp->shared->generation, 0);
    hca_qp_quiesce(qp);
    hca_engine_forget(qp);
    /* A flush that began before ends before its completions are taken out; a later one sees the state. */
    pthread_mutex_lock(&qp->lock);
    pthread_mutex_lock(&qp->rq_lock);
    pthread_mutex_unlock(&qp->rq_lock);
    pthread_mutex_unlock(&qp->lock);
    hca_cq_clean(qp->recv_cq, qp, true);
    if (qp->send_cq != qp->recv_cq)
        hca_cq_clean(qp->send_cq, qp, true);
    pthread_mutex_lock(&hca.lock);
    hca.qp[qp->slot] = NULL;
    struct hca_peer *peer = atomic_load(&hca.peer[hca_qpn_process(qp->attr.dest_qp_num)]);
    if (peer)
        hca_mapped_trim(peer);
    hca_async_forget(ibv->context, &qp->shared->async);
    if (qp->rq_ring)
        hca_heap_free((uint64_t)(qp->rq_ring - hca.segment), qp->rq_bytes);
    atomic_fetch_sub(&hca.header->bytes_adapter, qp->shared->bytes);
    pthread_mutex_unlock(&hca.lock);
    pthread_mutex_lock(&ibv->mutex);
    while (ibv->events_completed != qp->fetched_async)
        pthread_cond_wait(&ibv->cond, &ibv->mutex);
    pthread_mutex_unlock(&ibv->mutex);
    use_parts(qp, -1);
    release(qp);
    hca_cost_pay(HCA_COST_DESTROY, 1, HCA_COST_DESTROY, 0);
    return 0;
}
