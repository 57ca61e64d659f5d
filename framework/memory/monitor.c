/* The one owner of memory events in this process: process-wide by nature, as what is mapped is. Sources report here,
 * and every cache of every context is told. A report may come from inside malloc, fork or a signal handler: it takes no
 * lock, allocates nothing, and waits for nobody. */
#include "framework/memory/monitor.h"

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <strata/host.h>
#include <strata/sdk/hash.h>

enum { LISTENERS = 1024, COUNTS = 64 };

static struct {
    pthread_mutex_t lock; /* of those who subscribe and unsubscribe; no report takes it */
    bool forks_seen;
    _Atomic(unsigned) used; /* no listener is at or above */
    _Atomic(struct st_memory_listener *) listener[LISTENERS];
    /* Reports that are under way, counted in several places so that threads do not fight for one cache line, and by
     * turn: who waits for them turns to the other one, in which those that begin from then on are counted, so that
     * threads which report without pause cannot keep it waiting. */
    _Atomic(unsigned) turn; /* the lowest bit counts */
    struct {
        _Alignas(64) _Atomic(unsigned) n[2];
    } inside[COUNTS];
} monitor = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A thread is told from others by where its stack is. */
static _Atomic(unsigned) *monitor_my_count(void)
{
    uint64_t at = (uint64_t)(uintptr_t)__builtin_frame_address(0) >> 14;
    return &monitor.inside[st_hash(at) >> 58].n[atomic_load(&monitor.turn) & 1];
}
_Static_assert(COUNTS == 1 << (64 - 58), "my_count's shift");

/* Each listener is told that a range is gone, or of a fork. */
static inline void monitor_tell(bool forks, uintptr_t from, uintptr_t to)
{
    if (atomic_load_explicit(&monitor.used, memory_order_acquire) == 0)
        return;
    _Atomic(unsigned) *count = monitor_my_count();
    /* Sequentially consistent, as st_memory_unsubscribe's store of NULL and its look at this count are: either it sees
     * this report under way, or this report sees NULL. */
    atomic_fetch_add(count, 1);
    unsigned used = atomic_load(&monitor.used);
    for (unsigned i = 0; i < used; i++) {
        struct st_memory_listener *l = atomic_load(&monitor.listener[i]);
        if (l && !forks)
            l->gone(l, from, to);
        else if (l && l->fork)
            l->fork(l);
    }
    atomic_fetch_sub_explicit(count, 1, memory_order_release);
}

void st_memory_gone(uintptr_t from, uintptr_t to)
{
    if (from < to)
        monitor_tell(false, from, to);
}

void strata_host_memory_gone(const void *address, size_t length)
{
    uintptr_t from = (uintptr_t)address;
    st_memory_gone(from, length < UINTPTR_MAX - from ? from + length : UINTPTR_MAX);
}

/* ---- fork ------------------------------------------------------------------------------------------------------- */

/* After a fork whoever of the two writes a page first is given a copy, and a device keeps the other one; kernels since
 * 5.12 spare pages that are pinned, others do not. So no registration of before is handed out again. What is in use
 * cannot be helped here; what is not is undone now where that can be done at once, by the next look-up where it cannot.
 */
static void monitor_before_fork(void)
{
    st_memory_gone(0, UINTPTR_MAX);
    monitor_tell(true, 0, 0);
}

/* Threads that were inside a report do not exist in the child. */
static void monitor_in_child(void)
{
    for (unsigned i = 0; i < 2 * COUNTS; i++)
        atomic_store_explicit(&monitor.inside[i / 2].n[i % 2], 0, memory_order_relaxed);
    pthread_mutex_init(&monitor.lock, NULL);
}

/* ---- subscribing ------------------------------------------------------------------------------------------------ */

int st_memory_subscribe(struct st_memory_listener *listener)
{
    int rc = STRATA_ERR_NOMEM;
    pthread_mutex_lock(&monitor.lock);
    if (!monitor.forks_seen && pthread_atfork(monitor_before_fork, NULL, monitor_in_child) != 0)
        goto out;
    monitor.forks_seen = true;
    for (unsigned i = 0; i < LISTENERS; i++) {
        if (atomic_load_explicit(&monitor.listener[i], memory_order_relaxed))
            continue;
        atomic_store(&monitor.listener[i], listener);
        if (i >= atomic_load_explicit(&monitor.used, memory_order_relaxed))
            atomic_store(&monitor.used, i + 1);
        rc = STRATA_OK;
        break;
    }
out:
    pthread_mutex_unlock(&monitor.lock);
    return rc;
}

/* Until the reports of one turn have ended, which is soon: they wait for nobody, and new ones belong to the other. */
static void monitor_wait_for_a_turn(void)
{
    unsigned last = atomic_fetch_add(&monitor.turn, 1) & 1;
    for (unsigned i = 0; i < COUNTS; i++)
        while (atomic_load(&monitor.inside[i].n[last]) != 0)
            sched_yield();
}

void st_memory_unsubscribe(struct st_memory_listener *listener)
{
    pthread_mutex_lock(&monitor.lock);
    unsigned used = atomic_load_explicit(&monitor.used, memory_order_relaxed);
    for (unsigned i = 0; i < used; i++)
        if (atomic_load_explicit(&monitor.listener[i], memory_order_relaxed) == listener)
            atomic_store(&monitor.listener[i], NULL);
    while (used > 0 && !atomic_load_explicit(&monitor.listener[used - 1], memory_order_relaxed))
        used--;
    atomic_store(&monitor.used, used);
    /* Both, since a report may have looked whose turn it is long before it was counted. */
    monitor_wait_for_a_turn();
    monitor_wait_for_a_turn();
    pthread_mutex_unlock(&monitor.lock);
}
