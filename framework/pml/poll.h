/* Progress for calls that do not wait: strata_test*, strata_iprobe, strata_improbe. */
#ifndef ST_PML_POLL_H
#define ST_PML_POLL_H

#include <sched.h>
#include <stdatomic.h>

#include <strata/sdk/pml.h>
#include "framework/base/context.h"

/* Whoever calls these in a loop waits all the same: after as many calls without an event as a wait would spin for, the
 * processor goes to others, since one of them may be the rank that is to send. An embedder with an `idle` sees to that
 * itself. */
static inline void st_poll(const strata_comm_t *comm)
{
    strata_t *s = comm->worker->context;
    uint32_t n;

    if (st_worker_progress(comm->worker) > 0) {
        atomic_store_explicit(&s->missed, 0, memory_order_relaxed);
        return;
    }
    if (s->host && s->host->idle)
        return;
    n = atomic_load_explicit(&s->missed, memory_order_relaxed);
    if (n < s->spin_limit)
        atomic_store_explicit(&s->missed, n + 1, memory_order_relaxed);
    else
        sched_yield();
}

#endif
