/* The context's lock. */
#include <strata/sdk/idle.h>
#include "framework/worker/worker.h"

/* Tries before a thread sleeps. A send or a round of progress holds the lock for some tens to hundreds of ns; to be
 * woken costs tens of us, more than all of these tries. */
#define LOCK_TRIES 200

void st_worker_lock_wait(struct st_worker *w)
{
    int tries = LOCK_TRIES;

    atomic_fetch_add_explicit(&w->lock_waiters, 1, memory_order_relaxed);
    do
        st_relax();
    while (pthread_mutex_trylock(&w->mutex) != 0 && --tries > 0);
    if (tries == 0)
        pthread_mutex_lock(&w->mutex);
    atomic_fetch_sub_explicit(&w->lock_waiters, 1, memory_order_relaxed);
}
