/* Waiting: spin, yield, sleep; draining. */
#include <strata/sdk/idle.h>
#include "framework/worker/lane.h"

/* The round after a sleep does also what is done seldom, so that it finds what has ended the sleep. */
static void wait_asleep(struct worker *w, struct worker_sleeper *self, struct st_idle *idle)
{
    uint64_t used_ns = st_idle_sleep_begin(idle);
    worker_crowd_sleep(w, self, idle->sleep_us);
    st_idle_sleep_end(idle, used_ns);
    st_worker_lock(&w->head);
    st_worker_poll_soon(&w->head);
    lanes_mend_soon(w);
    st_worker_unlock(&w->head);
}

/* The calling thread counts as awake. */
static void wait_long(struct worker *w, bool (*done)(void *arg), void *arg, bool acts)
{
    struct worker_sleeper self = {.done = done, .arg = arg, .acts = acts};
    struct st_idle idle;
    int n;
    st_idle_begin(&idle, w->head.context);
    idle.count = w->head.spin;
    worker_busy_look(w);
    if (st_worker_is_busy(&w->head) && !idle.queue)
        st_idle_sleep_soon(&idle);
    while (n = st_worker_progress(&w->head), !done(arg)) {
        bool due = st_idle_embedder_due(&idle);
        if ((due && st_idle_embedder(&idle)) || n > 0) /* a long wait in which things move is not idleness */
            st_idle_reset(&idle);
        else if (due && !st_idle_spins(&idle))
            continue;
        else if (st_idle_step(&idle))
            wait_asleep(w, &self, &idle);
        if (ST_UNLIKELY(idle.long_ns)) {
            worker_was_long(w, idle.long_ns);
            st_idle_sleep_soon(&idle);
            idle.long_ns = 0;
        }
    }
}

/* The first polls come without ceremony: most waits end in one of them. */
static inline void wait_spinning(struct st_worker *w, bool (*done)(void *arg), void *arg, bool acts)
{
    uint32_t polls = st_worker_spins(w);
    while (!done(arg)) {
        if (polls-- == 0) {
            wait_long(worker_of(w), done, arg, acts);
            return;
        }
        if (st_worker_progress(w) == 0)
            st_relax();
    }
}

static inline void wait_enter(struct st_worker *w)
{
    if (ST_UNLIKELY(w->threaded))
        worker_crowd_enter(worker_of(w));
}
static inline void wait_leave(struct st_worker *w)
{
    if (ST_UNLIKELY(w->threaded))
        worker_crowd_leave(worker_of(w));
}

void st_worker_wait(struct st_worker *w, bool (*done)(void *arg), void *arg)
{
    wait_enter(w);
    wait_spinning(w, done, arg, false);
    wait_leave(w);
}

void st_worker_wait_acting(struct st_worker *w, bool (*done)(void *arg), void *arg)
{
    wait_enter(w);
    wait_spinning(w, done, arg, true);
    wait_leave(w);
}

void st_worker_wait_long(struct st_worker *w, bool (*done)(void *arg), void *arg)
{
    wait_enter(w);
    wait_long(worker_of(w), done, arg, false);
    wait_leave(w);
}

static bool wait_drained(void *arg)
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
    st_worker_wait(w, wait_drained, w);
}
