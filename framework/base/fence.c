/* The job's fence. A peer may still need something of us (an acknowledgement, room in a queue) before it can arrive, so
 * this thread makes progress until all are there. */
#include "framework/base/fence.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"

struct fence {
    struct st_rte *rte;
    _Atomic(int) done;
    int rc; /* written before done */
};

static void fence_done(void *arg, int rc)
{
    struct fence *f = arg;
    f->rc = rc;
    atomic_store_explicit(&f->done, 1, memory_order_release); /* pairs with the acquire in progress_until_done */
}

static void *blocking_fence(void *arg)
{
    struct fence *f = arg;
    fence_done(f, f->rte->ops->fence(f->rte));
    return NULL;
}

static void progress_until_done(strata_t *s, struct fence *f)
{
    long nap_ns = 0;
    for (unsigned idle = 0; !atomic_load_explicit(&f->done, memory_order_acquire); idle++) {
        if (s->pml && s->pml->ops->progress(s->pml) > 0) {
            idle = 0;
            nap_ns = 0;
            continue;
        }
        if (idle < 100) {
            sched_yield();
            continue;
        }
        /* Nothing tells this thread that the fence is over: naps that grow cost little and end soon enough. */
        nap_ns = nap_ns < 500000 ? nap_ns + 20000 : nap_ns;
        nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
    }
}

int st_fence(strata_t *s)
{
    struct fence f = {.rte = s->rte};
    if (s->rte->size == 1)
        return s->rte->ops->fence(s->rte);
    if (s->rte->ops->fence_begin) {
        int rc = s->rte->ops->fence_begin(s->rte, fence_done, &f);
        if (rc != STRATA_OK)
            return rc;
        progress_until_done(s, &f);
        return f.rc;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, blocking_fence, &f) != 0)
        return s->rte->ops->fence(s->rte);
    progress_until_done(s, &f);
    pthread_join(thread, NULL);
    return f.rc;
}
