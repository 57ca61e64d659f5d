/* Completion queues, the side that adds, which is any process: a ring whose entries are claimed by compare-and-swap,
 * each with the name of who claimed it, so that the owner can pass over an entry whose claimer died before it was
 * filled. Who was stopped with a claim while the owner replaced the ring finds the entry marked, and adds again. */
#include "hca.h"

#include <sched.h>
#include <string.h>
#include <time.h>

static struct hca_cqe *ring_of(char *segment, const struct hca_cq *cq, uint32_t *n)
{
    uint64_t word = atomic_load(&cq->ring), at = word & ~HCA_RING_BITS, bits = word & HCA_RING_BITS;

    if (bits > 31 || at < HCA_AT_HEAP || at > HCA_SIZE)
        return NULL;
    *n = 1u << bits;
    return *n > (HCA_SIZE - at) / sizeof(struct hca_cqe) ? NULL : (struct hca_cqe *)(void *)(segment + at);
}

/* The entry for the next position, claimed; NULL: the queue is full, or the ring has been replaced. */
static struct hca_cqe *claim(struct hca_cq *cq, struct hca_cqe *ring, uint32_t n, uint64_t *position, bool *moved)
{
    uint64_t t = atomic_load_explicit(&cq->tail, memory_order_relaxed);

    /* Bounded: others get on while we do not, but not that often. */
    for (uint64_t tries = 0; tries < 2ull * n + 100000u; tries++) {
        struct hca_cqe *e = &ring[t & (n - 1)];
        uint64_t free_state = hca_cqe_state(t, 0, HCA_CQE_EMPTY);
        /* Acquire: pairs with the owner's release when it emptied the entry. */
        if (atomic_compare_exchange_strong_explicit(&e->state, &free_state,
                                                    hca_cqe_state(t, hca.index, HCA_CQE_CLAIMED), memory_order_acquire,
                                                    memory_order_acquire)) {
            uint64_t expected = t;
            (void)atomic_compare_exchange_strong(&cq->tail, &expected, t + 1);
            *position = t;
            return e;
        }
        *moved = hca_cqe_kind_of(free_state) == HCA_CQE_MOVED;
        if (*moved || free_state >> 16 < t)
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

void hca_cq_notify(struct hca_peer *p, struct hca_cq *cq, bool solicited)
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

void hca_cq_overrun(struct hca_peer *p, struct hca_cq *cq)
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

/* Nobody frees the ring until `adding` is less again, nor replaces it, unless that takes too long. An owner that has
 * died in the middle of a change says nothing more, and a broken one anything; one that has lost the processor is
 * waited for: without the new ring this completion would be lost, and the queue with it. */
static void begin_adding(struct hca_peer *p, struct hca_cq *cq, uint32_t slot)
{
    const struct timespec pause = {0, 50000};
    struct hca_patience w = {0};

    for (int i = 0;; i++) {
        atomic_fetch_add(&cq->adding, 1);
        /* Of our own queues we know better than what peers can write. */
        if (p->index == hca.index ? !atomic_load(&hca.cq_moving[slot]) : !atomic_load(&cq->moving))
            return;
        if (i > 4 && ((p->index != hca.index && hca_peer_dead(p)) || (atomic_load(&p->stuck) && i >= 10) ||
                      (i >= 100 && hca_patience_over(p, &w)))) {
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

/* The fault `stall`: we lose the processor when we have claimed an entry. */
static void may_stall(void)
{
    static _Atomic(uint32_t) added;
    uint32_t every = atomic_load_explicit(&hca_trouble.stall, memory_order_relaxed);

    if (every && atomic_fetch_add(&added, 1) % every == every - 1)
        nanosleep(&(struct timespec){0, 20000000}, NULL);
}

enum added { ADDED, LOST, MOVED }; /* MOVED: the ring has been replaced meanwhile */

static enum added try_to_add(struct hca_peer *p, struct hca_cq *cq, const struct hca_cqe *what, bool full)
{
    struct hca_cqe *ring, *e;
    uint64_t position, claimed;
    bool moved = false;
    uint32_t n;

    ring = ring_of(p->segment, cq, &n);
    if (!ring || atomic_load(&cq->generation) == 0 || atomic_load_explicit(&cq->overrun, memory_order_relaxed))
        return LOST;
    e = full ? NULL : claim(cq, ring, n, &position, &moved);
    if (!e) {
        if (!moved)
            hca_cq_overrun(p, cq);
        return moved ? MOVED : LOST;
    }
    may_stall();
    memcpy((char *)e + sizeof e->state, (const char *)what + sizeof e->state, sizeof *e - sizeof e->state);
    claimed = hca_cqe_state(position, hca.index, HCA_CQE_CLAIMED);
    /* Sequentially consistent against hca_req_notify_cq: either the owner sees the entry when it polls after arming, or
     * we see it armed. It fails when the owner has not waited for us any longer: it has marked the entry, or passed
     * over it. */
    return atomic_compare_exchange_strong(&e->state, &claimed, hca_cqe_state(position, hca.index, HCA_CQE_FULL))
               ? ADDED
               : MOVED;
}

#define TRIES 8 /* no owner replaces its ring that often while one is added */

void hca_cq_push(struct hca_peer *p, uint32_t cq_slot, const struct hca_cqe *what)
{
    enum added how = MOVED;
    bool full = full_by_fault(p);
    struct hca_cq *cq;

    if (cq_slot >= HCA_CQS) {
        hca_parcel_free(p->segment, what->parcel);
        return;
    }
    cq = hca_cq_at(p->segment, cq_slot);
    for (int i = 0; i < TRIES && how == MOVED; i++) {
        begin_adding(p, cq, cq_slot);
        how = try_to_add(p, cq, what, full);
        atomic_fetch_sub(&cq->adding, 1);
    }
    if (how == MOVED)
        hca_cq_overrun(p, cq); /* lost, and said */
    if (how != ADDED)
        hca_parcel_free(p->segment, what->parcel);
    hca_cq_notify(p, cq, what->solicited || what->status != IBV_WC_SUCCESS);
}
