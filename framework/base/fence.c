/* The job's fence. A peer may still need something of us (an acknowledgement, room in a queue) before it can arrive, so
 * this thread makes progress until all are there.
 *
 * A rank that has failed never arrives. Most launchers end the fences of the others then; where one does not, a fence
 * that the rte began is given up fence_after_failure_ms after both the fence and the failure are known. The rte may
 * still answer, when the context is gone: it answers to a struct fence, which belongs to who lets go of it last. */
#include "framework/base/fence.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <strata/sdk/clock.h>
#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/worker/worker.h"

struct fence {
    struct st_rte *rte; /* for fence_blocking, which ends before the context */
    _Atomic(int) done;
    _Atomic(int) refs; /* who waits, and who answers */
    int rc;            /* written before done */
};

static void fence_let_go(struct fence *f)
{
    if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1)
        free(f);
}

static void fence_done(void *arg, int rc)
{
    struct fence *f = arg;
    f->rc = rc;
    atomic_store_explicit(&f->done, 1, memory_order_release); /* pairs with the acquire in fence_progress_until_done */
    fence_let_go(f);
}

static void *fence_blocking(void *arg)
{
    struct fence *f = arg;
    fence_done(f, f->rte->ops->fence(f->rte));
    return NULL;
}

/* *since: when a failure was first seen here, or 0. */
static bool fence_waited_enough(strata_t *s, int64_t *since)
{
    if (s->base->fence_after_failure_ms == 0 || !s->worker || !st_worker_any_failed(s->worker))
        return false;
    int64_t now = st_now_ms();
    if (*since == 0)
        *since = now;
    return now - *since >= s->base->fence_after_failure_ms;
}

/* False: it has been given up, which only a fence that can be left may be. */
static bool fence_progress_until_done(strata_t *s, struct fence *f, bool can_be_left)
{
    long nap_ns = 0;
    int64_t since = 0;
    for (unsigned idle = 0; !atomic_load_explicit(&f->done, memory_order_acquire); idle++) {
        if (s->worker && st_worker_progress(s->worker) > 0) {
            idle = 0;
            nap_ns = 0;
            continue;
        }
        if (idle < 100) {
            sched_yield();
            continue;
        }
        if (can_be_left && fence_waited_enough(s, &since))
            return false;
        /* Nothing tells this thread that the fence is over: naps that grow cost little and end soon enough. */
        nap_ns = nap_ns < 500000 ? nap_ns + 20000 : nap_ns;
        nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
    }
    return true;
}

/* The rte answers while this thread makes progress. */
static int fence_begun(strata_t *s, struct fence *f)
{
    int rc = s->rte->ops->fence_begin(s->rte, fence_done, f);
    if (rc != STRATA_OK) {
        fence_let_go(f); /* nobody will answer */
        return rc;
    }
    if (fence_progress_until_done(s, f, true))
        return f->rc;
    atomic_store(&s->fence_given_up, true);
    return STRATA_ERR_PEER;
}

/* A thread blocks in the rte while this one makes progress. */
static int fence_blocked(strata_t *s, struct fence *f)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fence_blocking, f) != 0) {
        fence_let_go(f);
        return s->rte->ops->fence(s->rte);
    }
    fence_progress_until_done(s, f, false);
    pthread_join(thread, NULL);
    return f->rc;
}

int st_fence(strata_t *s)
{
    if (s->rte->size == 1)
        return s->rte->ops->fence(s->rte);
    /* The launcher still counts this rank as there, in a fence that does not end. */
    if (atomic_load(&s->fence_given_up))
        return STRATA_ERR_PEER;
    struct fence *f = malloc(sizeof(*f));
    if (!f)
        return STRATA_ERR_NOMEM;
    *f = (struct fence){.rte = s->rte, .refs = 2};
    int rc = s->rte->ops->fence_begin ? fence_begun(s, f) : fence_blocked(s, f);
    fence_let_go(f);
    return rc;
}
