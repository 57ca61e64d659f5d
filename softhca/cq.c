/* Completion queues, their owner's side: making them, taking completions out, asking for events, changing their length.
 * The ring and how it is added to: cq_add.c. */
#include "cost.h"

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

/* Whether no process has this index any more. Elsewhere hca.lock is taken before that of a queue, so it is only tried
 * for. */
static bool gone(uint32_t index)
{
    struct hca_peer *p;

    if (pthread_mutex_trylock(&hca.lock) != 0)
        return false;
    p = hca_peer_find(index);
    pthread_mutex_unlock(&hca.lock);
    return !p || hca_peer_dead(p);
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
        if (!gone(hca_cqe_process(state)))
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
 * a ring, and at worst miss what this poll might have missed anyway. Sequentially consistent: pairs with try_to_add(),
 * for who polls after arming. */
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
            e->parcel = 0;
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

/* Under hca.lock: beyond all positions of queues that were destroyed. */
static uint64_t beyond;

/* An empty ring for the positions from *base on, which nobody knows yet. */
static struct hca_cqe *make_ring(uint32_t n, uint64_t *base)
{
    uint64_t at = hca_heap_alloc((size_t)n * sizeof(struct hca_cqe));
    struct hca_cqe *ring = (struct hca_cqe *)(void *)(hca.segment + at);

    if (at == 0)
        return NULL;
    *base = (*base + n - 1) & ~(uint64_t)(n - 1);
    for (uint32_t i = 0; i < n; i++)
        atomic_store_explicit(&ring[i].state, hca_cqe_state(*base + i, 0, HCA_CQE_EMPTY), memory_order_relaxed);
    return ring;
}

/* From now on it is the queue's, with `used` entries that are filled. */
static void use_ring(struct hca_cq_own *cq, struct hca_cqe *ring, uint32_t n, uint64_t base, uint32_t used)
{
    cq->ring = ring;
    cq->n = n;
    cq->mask = n - 1;
    cq->head = base;
    cq->claimed = 0;
    cq->ibv.cqe = (int)n;
    atomic_store_explicit(&cq->next, ring, memory_order_relaxed);
    cq->shared->bytes = (uint32_t)((size_t)n * sizeof(struct hca_cqe) + 256);
    /* In this order: who sees the ring sees its tail. */
    atomic_store(&cq->shared->tail, base + used);
    atomic_store(&cq->shared->ring, (uint64_t)((char *)ring - hca.segment) | (uint64_t)__builtin_ctz(n));
}

/* One that somebody may still be adding to stays in memory: who was stopped there writes when it goes on. */
static void free_ring(struct hca_cq_own *cq, const struct hca_cqe *ring, uint32_t n)
{
    cq->unsettled = atomic_load(&cq->shared->adding) > 0;
    if (!cq->unsettled)
        hca_heap_free((uint64_t)((const char *)ring - hca.segment), (size_t)n * sizeof *ring);
}

static int publish(struct hca_cq_own *cq, struct ibv_context *c, struct ibv_comp_channel *channel, uint32_t n)
{
    static uint32_t hint, generation;
    uint32_t slot =
        hca_slot_find((void *const *)hca.cq, hca.limits.max_cq < HCA_CQS ? hca.limits.max_cq : HCA_CQS, &hint);
    uint64_t base = beyond;
    struct hca_cqe *ring = slot == HCA_NONE ? NULL : make_ring(n, &base);
    struct hca_cq *s;

    if (!ring)
        return ENOMEM;
    s = cq->shared = hca_cq_at(hca.segment, slot);
    cq->slot = slot;
    use_ring(cq, ring, n, base, 0);
    /* `adding` stays: somebody may be held up in the queue that was here before. */
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
    hca_cost_pay(HCA_COST_CQ, 1, HCA_COST_CQ_ENTRY, (uint64_t)cqe);
    return &cq->ibv;
}

/* Fills the new ring, which nobody knows, with what is in the old one, and marks that: whoever would add there finds no
 * room, and whoever has claimed an entry cannot publish it. Returns how many entries were filled. */
static uint32_t move(struct hca_cq_own *cq, struct hca_cqe *to, uint32_t n, uint64_t base)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < cq->n; i++) {
        struct hca_cqe *e = &cq->ring[(cq->head + i) & cq->mask];
        if (hca_cqe_kind_of(atomic_exchange(&e->state, HCA_CQE_MOVED)) != HCA_CQE_FULL)
            continue;
        if (used == n) { /* published since the entries were counted */
            hca_cq_overrun(hca_peer_get(hca.index), cq->shared);
            hca_parcel_free(hca.segment, HCA_ONCE(e->parcel));
            continue;
        }
        memcpy((char *)&to[used] + sizeof e->state, (const char *)e + sizeof e->state, sizeof *e - sizeof e->state);
        atomic_store(&to[used].state, hca_cqe_state(base + used, hca.index, HCA_CQE_FULL));
        used++;
    }
    return used;
}

static uint32_t used_entries(const struct hca_cq_own *cq)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cq->n; i++)
        n += hca_cqe_kind_of(atomic_load(&cq->ring[i].state)) != HCA_CQE_EMPTY;
    return n;
}

static int replace(struct hca_cq_own *cq, uint32_t n)
{
    uint64_t base = cq->head + 2ull * cq->n;
    struct hca_cqe *old = cq->ring, *ring;
    uint32_t old_n = cq->n, old_bytes = cq->shared->bytes;

    if (used_entries(cq) > n)
        return EINVAL;
    ring = make_ring(n, &base);
    if (!ring)
        return ENOMEM;
    use_ring(cq, ring, n, base, move(cq, ring, n, base));
    free_ring(cq, old, old_n);
    atomic_fetch_add(&hca.header->bytes_adapter, (uint64_t)cq->shared->bytes - old_bytes);
    return 0;
}

#define LONGEST_SETTLE 1000000000u /* ns */

/* Until nobody adds any more, so that the old ring can be freed; nobody begins to. Bounded: who has died, or been
 * stopped, does not say that it is done. By the clock, too: a call of sched_yield(2) lasts long on a busy machine, and
 * others wait for the new ring meanwhile. */
static void settle(const struct hca_cq_own *cq)
{
    const uint64_t until = hca_now_ns() + LONGEST_SETTLE;
    int most = cq->unsettled ? 100 : 10000;

    for (int waited = 0; waited < most && atomic_load(&cq->shared->adding) > 0 && hca_now_ns() < until; waited++)
        sched_yield();
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
    settle(cq);
    rc = replace(cq, hca_pow2((uint32_t)cqe));
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
    if (beyond < cq->head + 2ull * cq->n)
        beyond = cq->head + 2ull * cq->n;
    free_ring(cq, cq->ring, cq->n);
    atomic_fetch_sub(&hca.header->bytes_adapter, cq->shared->bytes);
    pthread_mutex_unlock(&hca.lock);
    /* Every event that was fetched has to be acknowledged first: ibv_destroy_cq waits for it. */
    pthread_mutex_lock(&ibv->mutex);
    while (ibv->comp_events_completed != cq->fetched_events || ibv->async_events_completed != cq->fetched_async)
        pthread_cond_wait(&ibv->cond, &ibv->mutex);
    pthread_mutex_unlock(&ibv->mutex);
    free(cq);
    hca_cost_pay(HCA_COST_DESTROY, 1, HCA_COST_DESTROY, 0);
    return 0;
}
