/* Waiting: spin, yield, sleep. */
#include <sched.h>
#include <time.h>
#include "ob1_inl.h"

OB1_COLD void ob1_lock_slow(struct ob1 *pml)
{
    if (pthread_mutex_trylock(&pml->mutex) == 0)
        return;
    atomic_fetch_add_explicit(&pml->lock_waiters, 1, memory_order_relaxed);
    pthread_mutex_lock(&pml->mutex);
    atomic_fetch_sub_explicit(&pml->lock_waiters, 1, memory_order_relaxed);
}

/* Enough spinning and yielding: sleep until a transport has something. Queued work is not announced by any transport,
 * so with some of it, or with other threads that may complete what we wait for, the sleep is a short nap. */
static void sleep_until_event(struct ob1 *pml, struct st_idle *idle, bool (*done)(void *arg), void *arg)
{
    struct st_btl *const *btls = pml->head.bml->btls;
    bool armed = false;

    ob1_lock(pml);
    if (!pml->threaded && st_list_empty(&pml->blocked))
        armed = st_idle_arm(idle, btls, pml->n_btls);
    ob1_unlock(pml);
    if (armed) {
        if (!done(arg))
            st_idle_sleep(idle);
        st_idle_disarm(idle, btls, pml->n_btls);
    } else if (pml->threaded || !st_list_empty(&pml->blocked)) {
        struct timespec nap = {0, 20000};
        nanosleep(&nap, NULL);
    }
    ob1_lock(pml);
    ob1_poll_soon(pml);
    ob1_unlock(pml);
}

static __attribute__((noinline)) void wait_long(struct ob1 *pml, bool (*done)(void *arg), void *arg)
{
    struct st_idle idle;
    int n;

    st_idle_begin(&idle, pml->head.context);
    idle.count = pml->spin;
    while (n = ob1_progress(&pml->head), !done(arg)) {
        bool other = st_idle_embedder(&idle);
        if (n > 0 || other) /* a long wait in which things move is not idleness */
            st_idle_reset(&idle);
        else if (st_idle_step(&idle))
            sleep_until_event(pml, &idle, done, arg);
    }
}

/* The first polls come without ceremony: most waits end in one of them. */
OB1_INLINE void wait_until(struct ob1 *pml, bool (*done)(void *arg), void *arg)
{
    uint32_t polls = pml->spin;

    while (!done(arg)) {
        if (OB1_UNLIKELY(polls-- == 0)) {
            wait_long(pml, done, arg);
            return;
        }
        if (ob1_progress(&pml->head) == 0)
            st_relax();
    }
}

int ob1_wait(struct st_pml *head, bool (*done)(void *arg), void *arg)
{
    wait_until((struct ob1 *)head, done, arg);
    return STRATA_OK;
}

static bool req_done(void *arg)
{
    return ob1_req_done(arg);
}

/* For callers that have polled already: they go on with counting. */
void ob1_wait_req(struct ob1 *pml, struct ob1_req *req)
{
    if (!ob1_req_done(req))
        wait_long(pml, req_done, req);
}

void ob1_wait_new(struct ob1 *pml, struct ob1_req *req)
{
    wait_until(pml, req_done, req);
}

static bool drained(void *arg)
{
    struct ob1 *pml = arg;
    bool yes;

    ob1_lock(pml);
    yes = st_list_empty(&pml->blocked) && pml->detached == 0 && pml->fins.n == 0;
    ob1_unlock(pml);
    return yes;
}

int ob1_drain(struct st_pml *head)
{
    wait_until((struct ob1 *)head, drained, head);
    return STRATA_OK;
}
