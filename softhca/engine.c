/* Carries out send queues. Most work requests are done inside ibv_post_send: the kernel copies, the completion is
 * added, the peer has nothing to do. What must wait, for a receive or for a peer that does not answer, is tried again
 * later: by whoever polls a completion queue, and by a thread for programs that sleep. */
#define _GNU_SOURCE 1
#include "cost.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock; /* the list; a queue pair's lock is only tried under it */
    struct hca_qp_own *first;
    _Atomic(uint32_t) n;
    bool started;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t hca_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- waiting ---- */

static void wait_until(struct hca_qp_own *qp, uint64_t when)
{
    const uint64_t one = 1;

    qp->retry_at = when;
    if (qp->pending)
        return;
    pthread_mutex_lock(&waiting.lock);
    qp->pending = true;
    qp->pending_next = waiting.first;
    waiting.first = qp;
    atomic_fetch_add(&waiting.n, 1);
    pthread_mutex_unlock(&waiting.lock);
    if (write(hca.kick_fd, &one, sizeof one) < 0)
        return; /* the thread looks anyway */
}

void hca_engine_forget(struct hca_qp_own *qp)
{
    pthread_mutex_lock(&waiting.lock);
    for (struct hca_qp_own **at = &waiting.first; *at; at = &(*at)->pending_next) {
        if (*at == qp) {
            *at = qp->pending_next;
            atomic_fetch_sub(&waiting.n, 1);
            break;
        }
    }
    qp->pending = false;
    pthread_mutex_unlock(&waiting.lock);
}

/* Table 45 of the specification: what a receiver's 5 bits mean, in units of 10 us. */
static uint64_t rnr_ns(uint8_t timer)
{
    static const uint16_t tens_of_us[32] = {65535, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                            48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                            2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return (uint64_t)tens_of_us[timer & 31u] * 10000u;
}

/* 4.096 us << timeout; 0 is for ever, which we look at every second. */
static uint64_t timeout_ns(uint8_t timeout)
{
    return timeout == 0 ? 1000000000u : (uint64_t)4096 << timeout;
}

/* ---- one queue pair ---- */

static void say(const struct hca_qp_own *qp, enum ibv_wc_status status)
{
    struct hca_cqe e = {.id = qp->sq_next, .status = status, .qp_num = qp->ibv.qp_num, .is_send = 1};

    hca_cq_push(hca_peer_get(hca.index), qp->send_cq->slot, &e);
}

static void complete(struct hca_qp_own *qp, const struct hca_swqe *w, enum ibv_wc_status status)
{
    bool completes = status != IBV_WC_SUCCESS || qp->sq_sig_all || (w->flags & IBV_SEND_SIGNALED);

    hca_send_over(qp, completes, status);
    qp->tries = qp->rnr_tries = 0;
    qp->retry_at = 0;
    qp->delayed = false;
    if (completes)
        say(qp, status);
}

/* A work request failed: RC goes to the error state, the others to the send queue error state. */
static void failed(struct hca_qp_own *qp)
{
    uint32_t state = atomic_load(&qp->shared->state);

    if (qp->type == IBV_QPT_RC)
        hca_qp_break(hca_peer_get(hca.index), qp->shared, -1);
    else /* a state that somebody else set meanwhile holds */
        while ((state == IBV_QPS_RTS || state == IBV_QPS_SQD) &&
               !atomic_compare_exchange_weak(&qp->shared->state, &state, IBV_QPS_SQE))
            ;
    hca_flush_sends(qp);
}

/* The fault `delay`: true when this work request is to wait, which it does once. */
static bool delayed(struct hca_qp_own *qp)
{
    uint32_t most = atomic_load_explicit(&hca_trouble.delay_us, memory_order_relaxed);
    uint64_t now;

    if (most == 0 || qp->delayed)
        return false;
    qp->delayed = true;
    now = hca_now_ns();
    wait_until(qp, now + (now / 16 * 0x9e3779b97f4a7c15u >> 40) % ((uint64_t)most + 1) * 1000 + 1);
    return true;
}

/* The fault `fatal`: true when the queue pair has failed instead of sending this datagram. */
static bool fails(struct hca_qp_own *qp)
{
    if (qp->type != IBV_QPT_UD || !hca_fault_now(HCA_FAULT_FATAL))
        return false;
    hca_qp_break(hca_peer_get(hca.index), qp->shared, IBV_EVENT_QP_FATAL);
    return true;
}

/* The one branch that costs add to a message without any. */
static enum hca_outcome deliver(struct hca_qp_own *qp, const struct hca_swqe *w, enum ibv_wc_status *status)
{
    if (__builtin_expect(hca_cost.data, false))
        return hca_cost_deliver(qp, w, status);
    return qp->type == IBV_QPT_UD ? hca_deliver_ud(qp, w, status) : hca_deliver(qp, w, status);
}

/* True: go on with the next one, or with what the state asks for. */
static bool carry_out(struct hca_qp_own *qp)
{
    const struct hca_swqe *w = hca_swqe_at(qp, qp->sq_next);
    enum ibv_wc_status status = IBV_WC_SUCCESS;

    if (delayed(qp))
        return false;
    if (fails(qp))
        return true;
    switch (deliver(qp, w, &status)) {
    case HCA_DONE:
        break;
    case HCA_AGAIN_RNR:
        atomic_fetch_add_explicit(&hca_tally.not_ready, 1, memory_order_relaxed);
        if (qp->attr.rnr_retry == 7 || qp->rnr_tries++ < qp->attr.rnr_retry) {
            wait_until(qp, hca_now_ns() + rnr_ns(qp->peer_rnr_timer));
            return false;
        }
        status = IBV_WC_RNR_RETRY_EXC_ERR;
        break;
    case HCA_AGAIN_LOST:
        if (qp->attr.timeout == 0 || qp->tries++ < qp->attr.retry_cnt) {
            wait_until(qp, hca_now_ns() + timeout_ns(qp->attr.timeout));
            return false;
        }
        status = IBV_WC_RETRY_EXC_ERR;
        break;
    }
    complete(qp, w, status);
    if (status != IBV_WC_SUCCESS)
        failed(qp);
    return true;
}

/* In the state SQD what has been begun is finished, and nothing else is begun; then the event tells so, if it was asked
 * for. */
static void drained(struct hca_qp_own *qp)
{
    if (!qp->tell_drained)
        return;
    qp->tell_drained = false;
    hca_async(hca_peer_get(hca.index), &qp->shared->async, qp->shared->asynchronous, IBV_EVENT_SQ_DRAINED);
}

void hca_engine_run(struct hca_qp_own *qp)
{
    for (;;) {
        uint32_t state = hca_qp_state(qp->shared);
        bool begun = qp->retry_at != 0;
        if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
            hca_flush_sends(qp);
            return;
        }
        if (state == IBV_QPS_SQD && !begun)
            drained(qp);
        if (qp->sq_next == qp->sq_tail || !(state == IBV_QPS_RTS || (state == IBV_QPS_SQD && begun)) ||
            (begun && hca_now_ns() < qp->retry_at) || !carry_out(qp))
            return;
    }
}

/* ---- all of them ---- */

/* Those whose time has come. Returns when the next one's comes, ns; 0: none waits. */
static uint64_t run_waiting(void)
{
    uint64_t next = 0;

    pthread_mutex_lock(&waiting.lock);
    for (struct hca_qp_own **at = &waiting.first, *qp; (qp = *at) != NULL;) {
        if (pthread_mutex_trylock(&qp->lock) == 0) {
            hca_engine_run(qp);
            if (qp->retry_at == 0) {
                *at = qp->pending_next;
                qp->pending = false;
                atomic_fetch_sub(&waiting.n, 1);
                pthread_mutex_unlock(&qp->lock);
                continue;
            }
            /* In a state in which nothing is sent its time may be over for long. */
            uint64_t now = hca_now_ns(), when = qp->retry_at > now ? qp->retry_at : now + 100000;
            if (next == 0 || when < next)
                next = when;
            pthread_mutex_unlock(&qp->lock);
        } else {
            next = hca_now_ns() + 100000;
        }
        at = &qp->pending_next;
    }
    pthread_mutex_unlock(&waiting.lock);
    return next;
}

/* Queue pairs that a peer moved to the error state. hca.lock keeps them from being destroyed; their own locks are only
 * tried, since who holds one may want hca.lock. False: some are left for later. */
static bool look_after(void)
{
    bool all = true;

    if (atomic_exchange(&hca.header->attention, 0) == 0)
        return true;
    pthread_mutex_lock(&hca.lock);
    for (uint32_t i = 0; i < atomic_load(&hca.top_qp); i++) {
        struct hca_qp_own *qp = hca.qp[i];
        if (!qp || atomic_exchange(&qp->shared->attention, 0) == 0 || hca_qp_try_flush(qp))
            continue;
        atomic_store(&qp->shared->attention, 1);
        all = false;
    }
    pthread_mutex_unlock(&hca.lock);
    if (!all)
        atomic_store(&hca.header->attention, 1);
    return all;
}

void hca_engine_poll(void)
{
    /* No header: a child that polls a queue of its parent's. */
    if (hca.header && atomic_load_explicit(&hca.header->attention, memory_order_relaxed))
        (void)look_after();
    if (atomic_load_explicit(&waiting.n, memory_order_relaxed))
        (void)run_waiting();
}

/* Tells peers of our end before our pid can be another's: however a thread ends, the kernel sets FUTEX_OWNER_DIED in
 * the locks that its robust list says it holds. This thread ends with the process, and holds no others. Where the list
 * is refused, and until it has begun, the word is 0 and peers ask the kernel each time. */
static void leave_notice(struct robust_list_head *head, struct robust_list *held)
{
    _Atomic(uint32_t) *word = &((struct hca_header *)hca.header)->engine;

    held->next = &head->list;
    *head = (struct robust_list_head){.list = {held}, .futex_offset = (long)((uintptr_t)word - (uintptr_t)held)};
    atomic_store(word, (uint32_t)syscall(SYS_gettid));
    if (syscall(SYS_set_robust_list, head, sizeof *head) != 0)
        atomic_store(word, 0);
}

static void *engine(void *arg)
{
    struct robust_list_head head;
    struct robust_list held;
    uint64_t next = 0;

    (void)arg;
    leave_notice(&head, &held);
    for (;;) {
        struct pollfd f[3] = {{.fd = hca.kick_fd, .events = POLLIN},
                              {.fd = hca_control_fd(), .events = POLLIN},
                              {.fd = hca_serial_fd(), .events = POLLIN}};
        struct timespec t = {0, 0}, *limit = NULL;
        uint64_t count, now = hca_now_ns();
        bool all;
        if (next) {
            uint64_t left = next > now ? next - now : 0;
            t = (struct timespec){(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
            limit = &t;
        }
        if (ppoll(f, 3, limit, NULL) < 0 && errno != EINTR)
            return NULL;
        if (f[0].revents && read(hca.kick_fd, &count, sizeof count) < 0 && errno != EAGAIN)
            return NULL;
        if (f[1].revents)
            hca_control_serve();
        if (f[2].revents)
            hca_serial_serve();
        all = look_after();
        next = run_waiting();
        if (!all && (next == 0 || next > hca_now_ns() + 100000))
            next = hca_now_ns() + 100000;
    }
}

int hca_engine_start(void)
{
    pthread_attr_t a;
    pthread_t t;
    int rc = 0;

    pthread_mutex_lock(&waiting.lock);
    if (!waiting.started) {
        pthread_attr_init(&a);
        pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&a, 256u << 10);
        rc = pthread_create(&t, &a, engine, NULL);
        pthread_attr_destroy(&a);
        waiting.started = rc == 0;
    }
    pthread_mutex_unlock(&waiting.lock);
    return rc;
}

void hca_engine_in_child(void)
{
    pthread_mutex_init(&waiting.lock, NULL);
    waiting.first = NULL;
    atomic_store(&waiting.n, 0);
    waiting.started = false;
}
