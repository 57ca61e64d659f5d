/* Waiting: spin, yield, sleep; draining. */
#include <time.h>

#include <strata/sdk/idle.h>
#include "framework/worker/worker.h"

#define ALL_WORK (ST_ATTEND_LOOK - ST_ATTEND_WORK) /* of any client */

/* Enough spinning and yielding: sleep until a transport has something. Queued work is not announced by any transport,
 * so with some of it, or with other threads that may complete what we wait for, the sleep is a short nap. */
static void sleep_until_event(struct st_worker *w, struct st_idle *idle, bool (*done)(void *arg), void *arg)
{
    struct st_btl *const *btls = w->bml->btls;
    size_t n = w->bml->n_btls;
    bool armed = false;
    st_worker_lock(w);
    bool busy = w->threaded || (atomic_load_explicit(&w->attention, memory_order_relaxed) & ALL_WORK) != 0;
    if (!busy)
        armed = st_idle_arm(idle, btls, n);
    st_worker_unlock(w);
    if (armed) {
        if (!done(arg))
            st_idle_sleep(idle);
        st_idle_disarm(idle, btls, n);
    } else if (busy) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    st_worker_lock(w);
    st_worker_poll_soon(w);
    st_worker_unlock(w);
}

void st_worker_wait_long(struct st_worker *w, bool (*done)(void *arg), void *arg)
{
    struct st_idle idle;
    int n;
    st_idle_begin(&idle, w->context);
    idle.count = w->spin;
    while (n = st_worker_progress(w), !done(arg)) {
        bool other = st_idle_embedder(&idle);
        if (n > 0 || other) /* a long wait in which things move is not idleness */
            st_idle_reset(&idle);
        else if (st_idle_step(&idle))
            sleep_until_event(w, &idle, done, arg);
    }
}

/* The first polls come without ceremony: most waits end in one of them. */
void st_worker_wait(struct st_worker *w, bool (*done)(void *arg), void *arg)
{
    uint32_t polls = w->spin;
    while (!done(arg)) {
        if (polls-- == 0) {
            st_worker_wait_long(w, done, arg);
            return;
        }
        if (st_worker_progress(w) == 0)
            st_relax();
    }
}

static bool drained(void *arg)
{
    struct worker *w = arg;
    st_worker_lock(&w->head);
    bool yes = st_list_empty(&w->pending);
    for (unsigned am = 0; am < ST_AM_CLIENTS && yes; am++) {
        const struct st_client *c = w->clients[am].row;
        yes = !c || !c->drained || c->drained(w->clients[am].arg);
    }
    st_worker_unlock(&w->head);
    return yes;
}

void st_worker_drain(struct st_worker *w)
{
    st_worker_wait(w, drained, w);
}
