/* Completion channels and asynchronous events: semaphores of the kernel (eventfd) that count what is to be fetched;
 * what it is stands in the objects. So any process can raise an event, and the descriptor can be polled. */
#define _GNU_SOURCE 1
#include "cost.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

struct channel {
    struct ibv_comp_channel ibv;
    uint64_t token;
    struct hca_cq_own *first; /* those that signal here, under hca.lock */
};

struct ibv_comp_channel *hca_create_comp_channel(struct ibv_context *c)
{
    struct channel *ch = calloc(1, sizeof *ch);

    if (!ch)
        return NULL;
    ch->ibv.context = c;
    ch->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (ch->ibv.fd < 0) {
        free(ch);
        return NULL;
    }
    ch->token = hca_token(ch->ibv.fd);
    return &ch->ibv;
}

int hca_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    struct channel *ch = (struct channel *)ibv;

    if (ch->first)
        return EBUSY;
    hca_token_end(ch->token);
    close(ibv->fd);
    free(ch);
    return 0;
}

uint64_t hca_channel_token(const struct ibv_comp_channel *ibv)
{
    return ((const struct channel *)ibv)->token;
}

void hca_channel_add(struct ibv_comp_channel *ibv, struct hca_cq_own *cq)
{
    struct channel *ch = (struct channel *)ibv;

    cq->channel_next = ch->first;
    ch->first = cq;
    ibv->refcnt++;
}

/* Takes events back. Never waits, though the descriptor may be a blocking one and another thread may read it first. */
static void uncount(int fd, unsigned n)
{
    uint64_t one;
    struct iovec v = {&one, sizeof one};

    while (n-- > 0)
        if (preadv2(fd, &v, 1, -1, RWF_NOWAIT) != sizeof one)
            return;
}

void hca_channel_remove(struct ibv_comp_channel *ibv, struct hca_cq_own *cq)
{
    struct hca_cq_own **at = &((struct channel *)ibv)->first;

    while (*at && *at != cq)
        at = &(*at)->channel_next;
    if (*at) {
        *at = cq->channel_next;
        ibv->refcnt--;
        uint32_t events = atomic_exchange(&cq->shared->events, 0), most = atomic_load(&cq->armed) - cq->fetched_events;
        uncount(ibv->fd, events < most ? events : most);
    }
}

static bool take_one(_Atomic(uint32_t) *count)
{
    uint32_t n = atomic_load(count);

    while (n > 0)
        if (atomic_compare_exchange_weak(count, &n, n - 1))
            return true;
    return false;
}

/* The queue that an event of the channel is of: the one that counts it, and else, for the counts are where peers write,
 * one that was armed and is no more. NULL: of a queue that has been destroyed since. Under hca.lock. */
static struct hca_cq_own *event_of(struct channel *ch)
{
    struct hca_cq_own *q;

    for (q = ch->first; q; q = q->channel_next)
        if (q->fetched_events != atomic_load(&q->armed) && take_one(&q->shared->events))
            return q;
    for (q = ch->first; q; q = q->channel_next)
        if (q->fetched_events != atomic_load(&q->armed) && atomic_load(&q->shared->arm) == HCA_ARM_NOT)
            return q;
    return NULL;
}

int hca_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **user)
{
    struct channel *ch = (struct channel *)ibv;
    struct hca_cq_own *q;

    do {
        uint64_t one;
        if (read(ibv->fd, &one, sizeof one) != sizeof one)
            return -1;
        pthread_mutex_lock(&hca.lock);
        q = event_of(ch);
        if (q) {
            pthread_mutex_lock(&q->ibv.mutex);
            q->fetched_events++;
            pthread_mutex_unlock(&q->ibv.mutex);
            *cq = &q->ibv;
            *user = q->ibv.cq_context;
        }
        pthread_mutex_unlock(&hca.lock);
    } while (!q);
    hca_cost_pay(HCA_COST_EVENT, 1, HCA_COST_EVENT, 0);
    return 0;
}

void hca_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += n;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

/* ---- asynchronous events ---- */

void hca_async(struct hca_peer *p, _Atomic(uint32_t) *word, uint64_t token, enum ibv_event_type what)
{
    if (!(atomic_fetch_or(word, 1u << what) & 1u << what))
        hca_peer_signal(p, token);
}

void hca_async_forget(struct ibv_context *c, _Atomic(uint32_t) *word)
{
    uncount(c->async_fd, (unsigned)__builtin_popcount(atomic_exchange(word, 0)));
}

#define BIT(event) (1u << (event))
/* What each kind of object can have. Programs, and we when an event is acknowledged, tell the objects by it. */
#define OF_QPS                                                                                                         \
    (BIT(IBV_EVENT_QP_FATAL) | BIT(IBV_EVENT_QP_REQ_ERR) | BIT(IBV_EVENT_QP_ACCESS_ERR) | BIT(IBV_EVENT_COMM_EST) |    \
     BIT(IBV_EVENT_SQ_DRAINED) | BIT(IBV_EVENT_PATH_MIG) | BIT(IBV_EVENT_PATH_MIG_ERR) |                               \
     BIT(IBV_EVENT_QP_LAST_WQE_REACHED))
#define OF_CQS  BIT(IBV_EVENT_CQ_ERR)
#define OF_SRQS (BIT(IBV_EVENT_SRQ_ERR) | BIT(IBV_EVENT_SRQ_LIMIT_REACHED))

/* The lowest event of a word, taken out of it. What is none of `possible` a broken peer wrote there. */
static bool take_event(_Atomic(uint32_t) *word, uint32_t possible, struct ibv_async_event *event)
{
    uint32_t bits = atomic_load(word);

    while (bits & possible) {
        uint32_t lowest = (bits & possible) & -(bits & possible);
        if (atomic_compare_exchange_weak(word, &bits, bits & ~lowest)) {
            event->event_type = (enum ibv_event_type)__builtin_ctz(lowest);
            return true;
        }
    }
    return false;
}

static bool of_queue_pairs(uint32_t context, struct ibv_async_event *event)
{
    for (uint32_t i = 0; i < atomic_load(&hca.top_qp); i++) {
        struct hca_qp_own *qp = hca.qp[i];
        if (!qp || hca_context(qp->ibv.context)->number != context || !take_event(&qp->shared->async, OF_QPS, event))
            continue;
        pthread_mutex_lock(&qp->ibv.mutex);
        qp->fetched_async++;
        pthread_mutex_unlock(&qp->ibv.mutex);
        event->element.qp = &qp->ibv;
        return true;
    }
    return false;
}

static bool of_queues(uint32_t context, struct ibv_async_event *event)
{
    for (uint32_t i = 0; i < atomic_load(&hca.top_cq); i++) {
        struct hca_cq_own *cq = hca.cq[i];
        if (!cq || hca_context(cq->ibv.context)->number != context || !take_event(&cq->shared->async, OF_CQS, event))
            continue;
        pthread_mutex_lock(&cq->ibv.mutex);
        cq->fetched_async++;
        pthread_mutex_unlock(&cq->ibv.mutex);
        event->element.cq = &cq->ibv;
        return true;
    }
    for (uint32_t i = 0; i < atomic_load(&hca.top_srq); i++) {
        struct hca_srq_own *srq = hca.srq[i];
        if (!srq || hca_context(srq->ibv.context)->number != context ||
            !take_event(&srq->shared->async, OF_SRQS, event))
            continue;
        pthread_mutex_lock(&srq->ibv.mutex);
        srq->fetched_async++;
        pthread_mutex_unlock(&srq->ibv.mutex);
        event->element.srq = &srq->ibv;
        return true;
    }
    return false;
}

static bool of_device(struct hca_context *c, struct ibv_async_event *event)
{
    for (uint32_t p = 0; p < HCA_PORTS; p++) {
        if (take_event(&c->port_async[p], UINT32_MAX, event)) {
            event->element.port_num = (int)p + 1;
            return true;
        }
    }
    return take_event(&c->async, UINT32_MAX, event);
}

int hca_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
    struct hca_context *c = hca_context(ibv);

    for (;;) {
        uint64_t one;
        bool found;
        if (read(ibv->async_fd, &one, sizeof one) != sizeof one)
            return -1;
        pthread_mutex_lock(&hca.lock);
        found = of_device(c, event) || of_queue_pairs(c->number, event) || of_queues(c->number, event);
        pthread_mutex_unlock(&hca.lock);
        if (found)
            return 0;
    }
}

static void acknowledged(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *count)
{
    pthread_mutex_lock(mutex);
    ++*count;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
}

void hca_ack_async_event(struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        acknowledged(&event->element.cq->mutex, &event->element.cq->cond, &event->element.cq->async_events_completed);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        acknowledged(&event->element.qp->mutex, &event->element.qp->cond, &event->element.qp->events_completed);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        acknowledged(&event->element.srq->mutex, &event->element.srq->cond, &event->element.srq->events_completed);
        break;
    default: /* of a port or a device: nothing counts them */
        break;
    }
}
