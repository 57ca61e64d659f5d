/* The job's fence. A peer may still need something of us (an acknowledgement, room in a queue) before it can arrive, so
 * this thread makes progress until all are there.
 *
 * A rank that has failed never arrives. Most launchers end the fences of the others then; where one does not, a fence
 * that the rte began is given up fence_after_failure_ms after both the fence and the failure are known. The rte may
 * still answer, when the context is gone: it answers to a struct fence, which belongs to who lets go of it last. */
#include "framework/base/fence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <strata/sdk/clock.h>
#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/worker/worker.h"

struct fence {
    strata_t *context;
    pthread_mutex_t mutex;    /* guards `worker` */
    struct st_worker *worker; /* that is woken at the end; NULL: nobody waits any more */
    _Atomic(int) done;
    _Atomic(int) refs; /* who waits, and who answers */
    int rc;            /* written before done */
    bool can_be_left;
    int64_t failed_ms; /* when a failure was first seen here, or 0 */
};

static void fence_let_go(struct fence *f)
{
    if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

static void fence_done(void *arg, int rc)
{
    struct fence *f = arg;
    f->rc = rc;
    pthread_mutex_lock(&f->mutex);
    atomic_store_explicit(&f->done, 1, memory_order_release); /* pairs with the acquire in fence_is_over */
    if (f->worker)
        st_worker_wake(f->worker);
    pthread_mutex_unlock(&f->mutex);
    fence_let_go(f);
}

static void *fence_blocking(void *arg)
{
    struct fence *f = arg;
    struct st_rte *rte = f->context->rte; /* lives: who waits joins this thread first */
    fence_done(f, rte->ops->fence(rte));
    return NULL;
}

static bool fence_waited_enough(struct fence *f)
{
    strata_t *s = f->context;
    if (!f->can_be_left || s->base->fence_after_failure_ms == 0 || !st_worker_any_failed(s->worker))
        return false;
    int64_t now = st_now_ms();
    if (f->failed_ms == 0)
        f->failed_ms = now;
    return now - f->failed_ms >= s->base->fence_after_failure_ms;
}

static bool fence_is_over(void *arg)
{
    struct fence *f = arg;
    return atomic_load_explicit(&f->done, memory_order_acquire) || fence_waited_enough(f);
}

/* Progress until it is over; false: it has been given up. */
static bool fence_wait_for(struct fence *f)
{
    st_worker_wait(f->worker, fence_is_over, f);
    pthread_mutex_lock(&f->mutex);
    f->worker = NULL;
    pthread_mutex_unlock(&f->mutex);
    return atomic_load_explicit(&f->done, memory_order_acquire);
}

/* The rte answers while this thread makes progress. */
static int fence_begun(strata_t *s, struct fence *f)
{
    f->can_be_left = true;
    int rc = s->rte->ops->fence_begin(s->rte, fence_done, f);
    if (rc != STRATA_OK) {
        fence_let_go(f); /* nobody will answer */
        return rc;
    }
    if (fence_wait_for(f))
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
    fence_wait_for(f);
    pthread_join(thread, NULL);
    return f->rc;
}

int st_fence(strata_t *s)
{
    if (s->rte->size == 1 || !s->worker)
        return s->rte->ops->fence(s->rte);
    /* The launcher still counts this rank as there, in a fence that does not end. */
    if (atomic_load(&s->fence_given_up))
        return STRATA_ERR_PEER;
    struct fence *f = malloc(sizeof(*f));
    if (!f)
        return STRATA_ERR_NOMEM;
    *f = (struct fence){.context = s, .worker = s->worker, .refs = 2};
    pthread_mutex_init(&f->mutex, NULL);
    int rc = s->rte->ops->fence_begin ? fence_begun(s, f) : fence_blocked(s, f);
    fence_let_go(f);
    return rc;
}
