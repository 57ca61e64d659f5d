/* Completion queues. Any process may add, the owner takes out: a ring whose entries are claimed by compare-and-swap,
 * each with the name of who claimed it, so that the owner can pass over an entry whose claimer died before it was
 * filled. */
#include "hca.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t cqe_state(uint64_t position, uint32_t process, enum hca_cqe_kind kind)
{
    return position << 16 | (uint64_t)process << 2 | (uint64_t)kind;
}
static enum hca_cqe_kind kind_of(uint64_t state)
{
    return (enum hca_cqe_kind)(state & 3u);
}
static uint32_t process_of(uint64_t state)
{
    return (uint32_t)(state >> 2) & 0x3fffu;
}

/* ---- adding: any process ---- */

static struct hca_cqe *ring_of(char *segment, const struct hca_cq *cq, uint32_t *n)
{
    uint64_t at = HCA_ONCE(cq->ring);

    *n = HCA_ONCE(cq->n);
    if (*n == 0 || (*n & (*n - 1)) || at < HCA_AT_HEAP || at % HCA_LINE || at > HCA_SIZE ||
        *n > (HCA_SIZE - at) / sizeof(struct hca_cqe))
        return NULL;
    return (struct hca_cqe *)(void *)(segment + at);
}

/* The entry for the next position, claimed; NULL: the queue is full. */
static struct hca_cqe *claim(struct hca_cq *cq, struct hca_cqe *ring, uint32_t n, uint64_t *position)
{
    uint64_t t = atomic_load_explicit(&cq->tail, memory_order_relaxed);

    /* Bounded: others get on while we do not, but not that often. */
    for (uint64_t tries = 0; tries < 2ull * n + 100000u; tries++) {
        struct hca_cqe *e = &ring[t & (n - 1)];
        uint64_t free_state = cqe_state(t, 0, HCA_CQE_EMPTY);
        /* Acquire: pairs with the owner's release when it emptied the entry. */
        if (atomic_compare_exchange_strong_explicit(&e->state, &free_state, cqe_state(t, hca.index, HCA_CQE_CLAIMED),
                                                    memory_order_acquire, memory_order_acquire)) {
            uint64_t expected = t;
            (void)atomic_compare_exchange_strong(&cq->tail, &expected, t + 1);
            *position = t;
            return e;
        }
        if (free_state >> 16 < t)
            return NULL; /* still what was put there a round ago */
        if (free_state >> 16 == t) {
            uint64_t expected = t; /* claimed by somebody who has not moved the tail yet */
            (void)atomic_compare_exchange_strong(&cq->tail, &expected, t + 1);
            t++;
        } else {
            /* Used already, and the tail still there: of one that died between the two. */
            uint64_t expected = t;
            (void)atomic_compare_exchange_strong(&cq->tail, &expected, t + 1);
            t = atomic_load_explicit(&cq->tail, memory_order_relaxed);
        }
    }
    return NULL;
}

static void notify(struct hca_peer *p, struct hca_cq *cq, bool solicited)
{
    uint32_t arm = atomic_load(&cq->arm);

    while (arm == HCA_ARM_NEXT || (arm == HCA_ARM_SOLICITED && solicited)) {
        if (!atomic_compare_exchange_strong(&cq->arm, &arm, HCA_ARM_NOT))
            continue;
        atomic_fetch_add(&cq->events, 1);
        hca_peer_signal(p, HCA_ONCE(cq->event));
        return;
    }
}

static void overrun(struct hca_peer *p, struct hca_cq *cq)
{
    if (atomic_exchange(&cq->overrun, 1) == 0)
        hca_async(p, &cq->async, cq->asynchronous, IBV_EVENT_CQ_ERR);
}

/* The fault `overrun`: counts the completions of our own queues. */
static bool full_by_fault(const struct hca_peer *p)
{
    uint32_t n = p->index == hca.index ? atomic_load_explicit(&hca_trouble.overrun, memory_order_relaxed) : 0;

    while (n > 0)
        if (atomic_compare_exchange_weak(&hca_trouble.overrun, &n, n - 1))
            return n == 1;
    return false;
}

/* Nobody replaces the ring until end_adding. */
static void begin_adding(struct hca_peer *p, struct hca_cq *cq, uint32_t slot)
{
    const struct timespec pause = {0, 50000};

    for (int i = 0;; i++) {
        atomic_fetch_add(&cq->adding, 1);
        /* Of our own queues we know better than what peers can write. */
        if (p->index == hca.index ? !atomic_load(&hca.cq_moving[slot]) : !atomic_load(&cq->moving))
            return;
        /* Bounded, by about a second: an owner that dies in the middle of a change says nothing more, a broken one
         * anything. */
        if (i == (atomic_load(&p->stuck) ? 10 : 10000) || (i > 4 && p->index != hca.index && hca_peer_dead(p))) {
            atomic_store(&p->stuck, true);
            return;
        }
        atomic_fetch_sub(&cq->adding, 1);
        if (i < 100)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
}

static void end_adding(struct hca_cq *cq)
{
    atomic_fetch_sub(&cq->adding, 1);
}

/* The fault `stall`: we lose the processor when we have claimed an entry. */
static void may_stall(void)
{
    static _Atomic(uint32_t) added;
    uint32_t every = atomic_load_explicit(&hca_trouble.stall, memory_order_relaxed);

    if (every && atomic_fetch_add(&added, 1) % every == every - 1)
        nanosleep(&(struct timespec){0, 20000000}, NULL);
}

static void add(struct hca_peer *p, struct hca_cq *cq, const struct hca_cqe *what)
{
    struct hca_cqe *ring, *e;
    uint64_t position;
    uint32_t n;

    ring = ring_of(p->segment, cq, &n);
    if (!ring || atomic_load(&cq->generation) == 0 || atomic_load_explicit(&cq->overrun, memory_order_relaxed))
        return;
    e = full_by_fault(p) ? NULL : claim(cq, ring, n, &position);
    if (!e) {
        overrun(p, cq);
        return;
    }
    may_stall();
    memcpy((char *)e + sizeof e->state, (const char *)what + sizeof e->state, sizeof *e - sizeof e->state);
    /* Sequentially consistent against hca_req_notify_cq: either the owner sees the entry when it polls after arming, or
     * we see it armed. */
    atomic_store(&e->state, cqe_state(position, hca.index, HCA_CQE_FULL));
}

void hca_cq_push(struct hca_peer *p, uint32_t cq_slot, const struct hca_cqe *what)
{
    struct hca_cq *cq;

    if (cq_slot >= HCA_CQS)
        return;
    cq = hca_cq_at(p->segment, cq_slot);
    begin_adding(p, cq, cq_slot);
    add(p, cq, what);
    end_adding(cq);
    notify(p, cq, what->solicited || what->status != IBV_WC_SUCCESS);
}

/* ---- taking out: the owner, under the queue's lock ---- */

static void advance(struct hca_cq_own *cq)
{
    cq->head++;
    atomic_store_explicit(&cq->next, &cq->ring[cq->head & cq->mask], memory_order_relaxed);
}

/* The entry at head when it is filled. One whose claimer has died is passed over. */
static struct hca_cqe *filled(struct hca_cq_own *cq)
{
    for (;;) {
        struct hca_cqe *e = &cq->ring[cq->head & cq->mask];
        uint64_t state = atomic_load_explicit(&e->state, memory_order_acquire);
        if (kind_of(state) == HCA_CQE_FULL)
            return e;
        if (kind_of(state) == HCA_CQE_EMPTY)
            return NULL;
        if (++cq->stuck % 1024 != 0 || process_of(state) == hca.index)
            return NULL;
        struct hca_peer *p = hca_peer_get(process_of(state));
        if (p && !hca_peer_dead(p))
            return NULL;
        atomic_store_explicit(&e->state, cqe_state(cq->head + cq->n, 0, HCA_CQE_EMPTY), memory_order_release);
        advance(cq);
    }
}

static void release(struct hca_cq_own *cq, struct hca_cqe *e)
{
    cq->stuck = 0;
    /* Release: whoever claims the entry next writes after we have read. */
    atomic_store_explicit(&e->state, cqe_state(cq->head + cq->n, 0, HCA_CQE_EMPTY), memory_order_release);
    advance(cq);
}

/* What most polls find, without the lock. Should another thread replace the ring just now, we look at memory that was
 * a ring, and at worst miss what this poll might have missed anyway. Sequentially consistent: pairs with add(), for who
 * polls after arming. */
static bool nothing(struct hca_cq_own *cq)
{
    const struct hca_cqe *e = atomic_load_explicit(&cq->next, memory_order_relaxed);

    return kind_of(atomic_load(&e->state)) == HCA_CQE_EMPTY;
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
        if (kind_of(atomic_load_explicit(&e->state, memory_order_acquire)) == HCA_CQE_FULL &&
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
        if (kind_of(state) == HCA_CQE_EMPTY)
            break;
        found = kind_of(state) == HCA_CQE_FULL && e->qp_num &&
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
        notify(hca_peer_get(hca.index), cq->shared, true);
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
        atomic_store_explicit(&cq->ring[i].state, cqe_state(i, 0, HCA_CQE_EMPTY), memory_order_relaxed);
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

/* Moves what the old ring holds into the new one. Nobody adds meanwhile. */
static void move(struct hca_cq_own *cq, struct hca_cqe *from, uint64_t head, uint32_t n)
{
    uint64_t to = 0;

    for (uint32_t i = 0; i < n && to < cq->n; i++) {
        const struct hca_cqe *e = &from[(head + i) & (n - 1)];
        if (kind_of(atomic_load(&e->state)) != HCA_CQE_FULL)
            continue; /* of one that died before it had filled it */
        memcpy((char *)&cq->ring[to] + sizeof e->state, (const char *)e + sizeof e->state, sizeof *e - sizeof e->state);
        atomic_store(&cq->ring[to].state, cqe_state(to, hca.index, HCA_CQE_FULL));
        to++;
    }
    atomic_store(&cq->shared->tail, to);
}

static uint32_t filled_entries(const struct hca_cq_own *cq)
{
    uint32_t filled_ones = 0;

    for (uint32_t i = 0; i < cq->n; i++)
        filled_ones += kind_of(atomic_load(&cq->ring[i].state)) == HCA_CQE_FULL;
    return filled_ones;
}

static int replace(struct hca_cq_own *cq, uint32_t n)
{
    struct hca_cqe *old = cq->ring;
    uint64_t old_at = (uint64_t)((char *)old - hca.segment), head = cq->head;
    uint32_t old_n = cq->n, old_bytes = cq->shared->bytes;
    int rc = filled_entries(cq) > n ? EINVAL : make_ring(cq, n);

    if (rc != 0)
        return rc;
    move(cq, old, head, old_n);
    hca_heap_free(old_at, (size_t)old_n * sizeof(struct hca_cqe));
    atomic_fetch_add(&hca.header->bytes_adapter, (uint64_t)cq->shared->bytes - old_bytes);
    return 0;
}

int hca_resize_cq(struct ibv_cq *ibv, int cqe)
{
    struct hca_cq_own *cq = (struct hca_cq_own *)ibv;
    int rc, waited;

    if (hca.limits.fixed_cq)
        return EOPNOTSUPP;
    if (cqe < 1 || (uint32_t)cqe > hca.limits.max_cqe)
        return EINVAL;
    pthread_mutex_lock(&hca.lock);
    pthread_mutex_lock(&cq->lock);
    atomic_store(&hca.cq_moving[cq->slot], true);
    atomic_store(&cq->shared->moving, 1);
    /* Bounded: a peer that died while it was adding never says that it is done. */
    for (waited = 0; waited < 10000 && atomic_load(&cq->shared->adding) > 0; waited++)
        sched_yield();
    rc = replace(cq, hca_pow2((uint32_t)cqe));
    if (waited == 10000)
        atomic_store(&cq->shared->adding, 0);
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
