/* Rounds of progress: modules, failures, clients, lanes, pending work; and what is called outside the lock. */
#include "framework/base/context.h"
#include "framework/base/job_report.h"
#include "framework/base/live.h"
#include "framework/worker/lane.h"

/* Who spins for less than so many polls yields by itself soon enough, and sends on meanwhile. */
#define SPIN_SHORT 100u

/* Where there are threads the lock is held, with which nobody gives the processor up. */
static void progress_after_wake(struct worker *w)
{
    st_worker_calm(&w->head, WORKER_WOKE);
    if (!w->head.threaded) {
        worker_yield(w);
        return;
    }
    atomic_store_explicit(&w->woke, true, memory_order_relaxed);
    st_worker_news(&w->head);
}

int st_worker_attend_all(struct st_worker *head, int polled)
{
    struct worker *w = worker_of(head);
    int n = 0;
    if (atomic_load_explicit(&head->attention, memory_order_acquire) >= ST_ATTEND_FAILURE)
        n += worker_failures_handle(w);
    uint32_t due = atomic_load_explicit(&head->attention, memory_order_relaxed);
    for (unsigned am = 0; am < ST_AM_CLIENTS; am++) {
        const struct st_client *c = w->clients[am].row;
        if (due & (uint32_t)(ST_ATTEND_WORK | ST_ATTEND_LOOK) << am && c && c->attend)
            n += c->attend(w->clients[am].arg);
    }
    if (due & WORKER_MENDING)
        lanes_mend(w);
    /* What the clients have queued just now goes in this round. */
    if (atomic_load_explicit(&head->attention, memory_order_relaxed) & WORKER_PENDING)
        n += worker_pending_run(w);
    if (due & WORKER_ASKED) {
        st_worker_calm(head, WORKER_ASKED);
        atomic_store_explicit(&w->asked, true, memory_order_relaxed);
        st_worker_news(head);
    }
    if (due & WORKER_ASLEEP && polled + n > 0)
        st_worker_news(head);
    if (due & WORKER_WOKE)
        progress_after_wake(w);
    return n;
}

void st_worker_woke(struct st_worker *head)
{
    if (head->context->spin_limit > SPIN_SHORT)
        atomic_fetch_or_explicit(&head->attention, WORKER_WOKE, memory_order_relaxed);
}

void st_worker_outside(struct st_worker *head)
{
    struct worker *w = worker_of(head);
    st_worker_lock(&w->head);
    atomic_store_explicit(&w->head.news, false, memory_order_relaxed);
    st_worker_unlock(&w->head);
    st_worker_tell_failures(&w->head);
    if (atomic_load_explicit(&w->asked, memory_order_relaxed) && atomic_exchange(&w->asked, false)) {
        st_job_report_answer(head->context);
        st_live_answer(head->context);
    }
    for (unsigned am = 0; am < ST_AM_CLIENTS; am++) {
        const struct st_client *c = w->clients[am].row;
        if (c && c->outside)
            c->outside(w->clients[am].arg);
    }
    if (atomic_load_explicit(&w->crowd.n_asleep, memory_order_relaxed) > 0)
        worker_crowd_tell(w);
    if (atomic_load_explicit(&w->woke, memory_order_relaxed) && atomic_exchange(&w->woke, false))
        worker_yield(w);
}

void st_worker_ask(struct st_worker *w)
{
    atomic_fetch_or_explicit(&w->attention, WORKER_ASKED, memory_order_relaxed);
    st_worker_wake(w);
}

int st_worker_progress(struct st_worker *w)
{
    /* Whoever wants to start something goes first; whoever is in progress already works for us too. */
    if (ST_UNLIKELY(w->threaded) &&
        (atomic_load_explicit(&w->lock_waiters, memory_order_relaxed) != 0 || pthread_mutex_trylock(&w->mutex) != 0))
        return 0;
    int n = st_worker_poll(w);
    bool news = st_worker_has_news(w);
    st_worker_unlock(w);
    if (ST_UNLIKELY(news))
        st_worker_outside(w);
    return n;
}
