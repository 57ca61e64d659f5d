/* Completion queues, their owner's side: making them, taking completions out, asking for events, changing their length.
 * The ring and how it is added to: cq_add.c. */
#include "hca.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- taking out: the owner, under the queue's lock ---- */

static void advance(struct hca_cq_own *cq)
{
    cq->head++;
    atomic_store_explicit(&cq->next, &cq->ring[cq->head & cq->mask], memory_order_relaxed);
}

/* A claim lasts a fraction of a microsecond. After so many polls that met it, and so long, it is asked whether who made
 * it lives. Not by polls alone: whoever sleeps polls a hundred times a second. */
#define CLAIM_POLLS 8u
#define CLAIM_NS    100000u

static bool overdue(struct hca_cq_own *cq)
{
    uint64_t now;

    if (++cq->claimed < CLAIM_POLLS)
        return false;
    now = hca_now_ns();
    if (cq->claimed == CLAIM_POLLS)
        cq->claimed_ns = now;
    if (now - cq->claimed_ns < CLAIM_NS)
        return false;
    cq->claimed_ns = now;
    return true;
}

/* The entry at head when it is filled. One whose claimer has died is passed over. */
static struct hca_cqe *filled(struct hca_cq_own *cq)
{
    for (;;) {
        struct hca_cqe *e = &cq->ring[cq->head & cq->mask];
        uint64_t state = atomic_load_explicit(&e->state, memory_order_acquire);
        if (hca_cqe_kind_of(state) == HCA_CQE_FULL)
            return e;
        if (hca_cqe_kind_of(state) == HCA_CQE_EMPTY)
            return NULL;
        if (hca_cqe_process(state) == hca.index || !overdue(cq))
            return NULL;
        struct hca_peer *p = hca_peer_get(hca_cqe_process(state));
        if (p && !hca_peer_dead(p))
            return NULL;
        cq->claimed = 0;
        atomic_store_explicit(&e->state, hca_cqe_state(cq->head + cq->n, 0, HCA_CQE_EMPTY), memory_order_release);
        advance(cq);
    }
}

static void release(struct hca_cq_own *cq, struct hca_cqe *e)
{
    cq->claimed = 0;
    /* Release: whoever claims the entry next writes after we have read. */
    atomic_store_explicit(&e->state, hca_cqe_state(cq->head + cq->n, 0, HCA_CQE_EMPTY), memory_order_release);
    advance(cq);
}

/* What most polls find, without the lock. Should another thread replace the ring just now, we look at memory that was
 * a ring, and at worst miss what this poll might have missed anyway. Sequentially consistent: pairs with add(), for who
 * polls after arming. */
static bool nothing(struct hca_cq_own *cq)
{
    const struct hca_cqe *e = atomic_load_explicit(&cq->next, memory_order_relaxed);

    return hca_cqe_kind_of(atomic_load(&e->state)) == HCA_CQE_EMPTY;
}

static int overrun_said(const struct hca_cq_own *cq)
{
    return atomic_load_explicit(&cq->shared->overrun, memory_order_relaxed) ? -1 : 0;
}

int hca_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
    struct hca_cq_own *cq = (struct hca_cq_own *)ibv;
    struct hca_cqe *e;
    int got = 0;

    hca_engine_poll();
    if (nothing(cq))
        return overrun_said(cq);
    pthread_mutex_lock(&cq->lock);
    /* Bounded: what is of nobody a broken peer may add without end. */
    for (uint32_t i = 0; i < cq->n && got < n && (e = filled(cq)) != NULL; i++) {
        got += hca_completion(cq, e, &wc[got]);
        release(cq, e);
    }
    pthread_mutex_unlock(&cq->lock);
    return got > 0 ? got : overrun_said(cq);
}

void hca_cq_clean(struct hca_cq_own *cq, struct hca_qp_own *qp, bool for_good)
{
    pthread_mutex_lock(&cq->lock);
    for (uint32_t i = 0; i < cq->n; i++) {
        struct hca_cqe *e = &cq->ring[(cq->head + i) & cq->mask];
        if (hca_cqe_kind_of(atomic_load_explicit(&e->state, memory_order_acquire)) == HCA_CQE_FULL &&
            e->qp_num == qp->ibv.qp_num) {
            hca_completion_drop(qp, e);
            e->qp_num = 0;
        }
    }
    if (for_good && qp->send_cq == cq)
        atomic_store(&hca.cqs_of[qp->slot].send, 0);
    if (for_good && qp->recv_cq == cq)
        atomic_store(&hca.cqs_of[qp->slot].recv, 0);
    pthread_mutex_unlock(&cq->lock);
}

/* Whether a completion that has not been polled is one that the request is for. */
static bool unpolled(struct hca_cq_own *cq, bool solicited_only)
{
    bool found = false;

    pthread_mutex_lock(&cq->lock);
    for (uint32_t i = 0; i < cq->n && !found; i++) {
        const struct hca_cqe *e = &cq->ring[(cq->head + i) & cq->mask];
        uint64_t state = atomic_load(&e->state);
        if (hca_cqe_kind_of(state) == HCA_CQE_EMPTY)
            break;
        found = hca_cqe_kind_of(state) == HCA_CQE_FULL && e->qp_num &&
                (!solicited_only || e->solicited || e->status != IBV_WC_SUCCESS);
    }
    pthread_mutex_unlock(&cq->lock);
    return found;
}

int hca_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    struct hca_cq_own *cq = (struct hca_cq_own *)ibv;
    uint32_t want = solicited_only ? HCA_ARM_SOLICITED : HCA_ARM_NEXT, arm = atomic_load(&cq->shared->arm);

    atomic_fetch_add(&cq->armed, 1);
    /* Arming for any completion is not taken back by arming for a solicited one. */
    while (arm < want && !atomic_compare_exchange_weak(&cq->shared->arm, &arm, want))
        ;
    if (hca.limits.arm_unpolled && hca.header && unpolled(cq, solicited_only))
        hca_cq_notify(hca_peer_get(hca.index), cq->shared, true);
    return 0;
}

/* ---- making and destroying ---- */

static int make_ring(struct hca_cq_own *cq, uint32_t n)
{
    uint64_t at = hca_heap_alloc((size_t)n * sizeof(struct hca_cqe));

    if (at == 0)
        return ENOMEM;
    cq->ring = (struct hca_cqe *)(void *)(hca.segment + at);
    cq->n = n;
    cq->mask = n - 1;
    cq->head = 0;
    atomic_store_explicit(&cq->next, cq->ring, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++)
        atomic_store_explicit(&cq->ring[i].state, hca_cqe_state(i, 0, HCA_CQE_EMPTY), memory_order_relaxed);
    cq->shared->ring = at;
    cq->shared->n = n;
    cq->shared->bytes = (uint32_t)((size_t)n * sizeof(struct hca_cqe) + 256);
    atomic_store(&cq->shared->tail, 0);
    cq->ibv.cqe = (int)n;
    return 0;
}

static int publish(struct hca_cq_own *cq, struct ibv_context *c, struct ibv_comp_channel *channel, uint32_t n)
{
    static uint32_t hint, generation;
    uint32_t slot =
        hca_slot_find((void *const *)hca.cq, hca.limits.max_cq < HCA_CQS ? hca.limits.max_cq : HCA_CQS, &hint);
    struct hca_cq *s;
    int rc;

    if (slot == HCA_NONE)
        return ENOMEM;
    s = cq->shared = hca_cq_at(hca.segment, slot);
    cq->slot = slot;
    rc = make_ring(cq, n);
    if (rc != 0)
        return rc;
    atomic_store(&s->adding, 0);
    atomic_store(&s->moving, 0);
    s->event = channel ? hca_channel_token(channel) : 0;
    s->asynchronous = hca_context(c)->asynchronous;
    s->context = hca_context(c)->number;
    atomic_store(&s->arm, HCA_ARM_NOT);
    atomic_store(&s->events, 0);
    atomic_store(&s->overrun, 0);
    atomic_store(&s->async, 0);
    hca.cq[slot] = cq;
    atomic_fetch_add(&hca.header->bytes_adapter, s->bytes);
    hca_top_raise(&hca.top_cq, &hca.header->top_cq, slot);
    atomic_store_explicit(&s->generation, ++generation ? generation : ++generation, memory_order_release);
    return 0;
}

struct ibv_cq *hca_create_cq(struct ibv_context *c, int cqe, void *user, struct ibv_comp_channel *channel, int vector)
{
    struct hca_cq_own *cq;
    int rc;

    if (hca_device_gone(hca_context(c)->device->index)) {
        errno = EIO;
        return NULL;
    }
    if (cqe < 1 || (uint32_t)cqe > hca.limits.max_cqe || vector < 0 || vector >= c->num_comp_vectors ||
        (channel && channel->context != c)) {
        errno = EINVAL;
        return NULL;
    }
    cq = hca_fault_now(HCA_FAULT_CQ) ? NULL : calloc(1, sizeof *cq);
    if (!cq) {
        errno = ENOMEM;
        return NULL;
    }
    cq->ibv.context = c;
    cq->ibv.channel = channel;
    cq->ibv.cq_context = user;
    cq->ibv.handle = HCA_NONE;
    pthread_mutex_init(&cq->ibv.mutex, NULL);
    pthread_cond_init(&cq->ibv.cond, NULL);
    pthread_mutex_init(&cq->lock, NULL);
    pthread_mutex_lock(&hca.lock);
    rc = publish(cq, c, channel, hca_pow2((uint32_t)cqe));
    if (rc == 0 && channel)
        hca_channel_add(channel, cq);
    pthread_mutex_unlock(&hca.lock);
    if (rc != 0) {
        free(cq);
        errno = rc;
        return NULL;
    }
    return &cq->ibv;
}

/* From now on whoever would add here does so in the new ring: true for an entry that is filled already. */
static bool leave(struct hca_cqe *e)
{
    uint64_t state = atomic_load(&e->state);

    while (hca_cqe_kind_of(state) != HCA_CQE_FULL)
        if (atomic_compare_exchange_weak(&e->state, &state, (state & ~(uint64_t)3) | HCA_CQE_MOVED))
            return false;
    return true;
}

/* Moves what the old ring holds into the new one. Nobody adds to that meanwhile. */
static void move(struct hca_cq_own *cq, struct hca_cqe *from, uint64_t head, uint32_t n, bool settled)
{
    uint64_t to = 0;

    for (uint32_t i = 0; i < n && to < cq->n; i++) {
        struct hca_cqe *e = &from[(head + i) & (n - 1)];
        if (settled ? hca_cqe_kind_of(atomic_load(&e->state)) != HCA_CQE_FULL : !leave(e))
            continue;
        memcpy((char *)&cq->ring[to] + sizeof e->state, (const char *)e + sizeof e->state, sizeof *e - sizeof e->state);
        atomic_store(&cq->ring[to].state, hca_cqe_state(to, hca.index, HCA_CQE_FULL));
        to++;
    }
    atomic_store(&cq->shared->tail, to);
}

static uint32_t used_entries(const struct hca_cq_own *cq)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cq->n; i++)
        n += hca_cqe_kind_of(atomic_load(&cq->ring[i].state)) != HCA_CQE_EMPTY;
    return n;
}

static int replace(struct hca_cq_own *cq, uint32_t n, bool settled)
{
    struct hca_cqe *old = cq->ring;
    uint64_t old_at = (uint64_t)((char *)old - hca.segment), head = cq->head;
    uint32_t old_n = cq->n, old_bytes = cq->shared->bytes;
    int rc = used_entries(cq) > n ? EINVAL : make_ring(cq, n);

    if (rc != 0)
        return rc;
    move(cq, old, head, old_n, settled);
    /* Else it stays as it is: whoever was stopped while it added writes there when it goes on. */
    if (settled)
        hca_heap_free(old_at, (size_t)old_n * sizeof(struct hca_cqe));
    atomic_fetch_add(&hca.header->bytes_adapter, (uint64_t)cq->shared->bytes - old_bytes);
    return 0;
}

/* Nobody adds any more, and nobody begins to. Bounded: who has died, or been stopped, does not say that it is done. */
static bool settle(struct hca_cq_own *cq)
{
    int most = cq->unsettled ? 100 : 10000;

    for (int waited = 0; waited < most; waited++) {
        if (atomic_load(&cq->shared->adding) == 0)
            return true;
        sched_yield();
    }
    cq->unsettled = true;
    return false;
}

int hca_resize_cq(struct ibv_cq *ibv, int cqe)
{
    struct hca_cq_own *cq = (struct hca_cq_own *)ibv;
    int rc;

    if (hca.limits.fixed_cq)
        return EOPNOTSUPP;
    if (cqe < 1 || (uint32_t)cqe > hca.limits.max_cqe)
        return EINVAL;
    pthread_mutex_lock(&hca.lock);
    pthread_mutex_lock(&cq->lock);
    atomic_store(&hca.cq_moving[cq->slot], true);
    atomic_store(&cq->shared->moving, 1);
    rc = replace(cq, hca_pow2((uint32_t)cqe), settle(cq));
    atomic_store(&cq->shared->moving, 0);
    atomic_store(&hca.cq_moving[cq->slot], false);
    pthread_mutex_unlock(&cq->lock);
    pthread_mutex_unlock(&hca.lock);
    return rc;
}

int hca_destroy_cq(struct ibv_cq *ibv)
{
    struct hca_cq_own *cq = (struct hca_cq_own *)ibv;

    if (atomic_load(&cq->users) > 0)
        return EBUSY;
    pthread_mutex_lock(&hca.lock);
    atomic_store(&cq->shared->generation, 0);
    hca.cq[cq->slot] = NULL;
    hca_async_forget(ibv->context, &cq->shared->async);
    if (ibv->channel)
        hca_channel_remove(ibv->channel, cq);
    hca_heap_free((uint64_t)((char *)cq->ring - hca.segment), (size_t)cq->n * sizeof(struct hca_cqe));
    atomic_fetch_sub(&hca.header->bytes_adapter, cq->shared->bytes);
    pthread_mutex_unlock(&hca.lock);
    /* Every event that was fetched has to be acknowledged first: ibv_destroy_cq waits for it. */
    pthread_mutex_lock(&ibv->mutex);
    while (ibv->comp_events_completed != cq->fetched_events || ibv->async_events_completed != cq->fetched_async)
        pthread_cond_wait(&ibv->cond, &ibv->mutex);
    pthread_mutex_unlock(&ibv->mutex);
    free(cq);
    return 0;
}
