/* Whether others want the processor. A yield that takes long has given it to somebody who computes; spinning then costs
 * the share of the processor that is needed later, and whoever yields has its turn after the others, not when its
 * message comes. For some time nobody spins for long or yields: a sleep is ended by the message, and the kernel prefers
 * who has slept. */
#include <strata/sdk/clock.h>

#include "framework/base/idle_policy.h"
#include "framework/worker/worker.h"

/* So many times as long as the yield took. */
#define BUSY_TIMES 16u

void worker_was_long(struct worker *w, uint64_t took)
{
    atomic_store_explicit(&w->busy_ns, st_now_ns() + BUSY_TIMES * took, memory_order_relaxed);
    atomic_store_explicit(&w->head.busy, true, memory_order_relaxed);
}

void worker_busy_look(struct worker *w)
{
    if (st_worker_is_busy(&w->head) && st_now_ns() >= atomic_load_explicit(&w->busy_ns, memory_order_relaxed))
        atomic_store_explicit(&w->head.busy, false, memory_order_relaxed);
}

void worker_yield(struct worker *w)
{
    uint64_t took;

    worker_busy_look(w);
    if (st_worker_is_busy(&w->head))
        return;
    took = st_yield_long();
    if (took)
        worker_was_long(w, took);
}
