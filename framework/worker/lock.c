/* The context's lock. */
#include "framework/worker/worker.h"

void st_worker_lock_wait(struct st_worker *w)
{
    atomic_fetch_add_explicit(&w->lock_waiters, 1, memory_order_relaxed);
    pthread_mutex_lock(&w->mutex);
    atomic_fetch_sub_explicit(&w->lock_waiters, 1, memory_order_relaxed);
}
