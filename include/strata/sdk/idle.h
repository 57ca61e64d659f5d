/* How a waiting thread spends its time before it sleeps: it spins, then it yields.
 *
 *     struct st_idle idle;
 *     st_idle_begin(&idle, context);
 *     while (!done)
 *         if (progress() > 0)
 *             st_idle_reset(&idle);
 *         else if (st_idle_step(&idle))
 *             sleep;                           // for idle.sleep_us at most
 *
 * Parameters: mca_base_spin (polls before yielding), mca_base_yield (yields before sleeping), mca_base_sleep_max_us.
 * The defaults depend on whether this machine runs more ranks than the process may use processors. */
#ifndef STRATA_SDK_IDLE_H
#define STRATA_SDK_IDLE_H

#include <strata/sdk/btl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* State of one wait; on the stack of who waits. */
struct st_idle {
    uint32_t count;              /* polls without an event */
    uint32_t spin_limit;         /* then yields begin */
    uint32_t yield_limit;        /* then sleeping begins */
    uint32_t sleep_us;           /* bound on one sleep */
    uint64_t long_ns;            /* what the last yield took, if it was long; else 0 */
    int (*embedder)(void *user); /* strata_host_t.idle or NULL: st_idle_embedder */
    void *embedder_user;         /* its argument */
    uint32_t embedder_turn;      /* counts steps */
};

/* Between two polls that found nothing. Without it an x86-64 has many polls under way when the line changes and throws
 * them all away: measured, the pause halves the latency. An aarch64 is told that another thread of the core may go on.
 */
static inline void st_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* Starts a wait with the limits of the context. */
ST_API void st_idle_begin(struct st_idle *idle, const strata_t *s);
/* Something happened: spin again. */
static inline void st_idle_reset(struct st_idle *idle)
{
    idle->count = 0;
}
/* Pauses or yields; true when it is time to sleep. */
ST_API bool st_idle_step_slow(struct st_idle *idle);
/* Nothing happened: pauses or yields; true when it is time to sleep. */
static inline bool st_idle_step(struct st_idle *idle)
{
    if (++idle->count < idle->spin_limit) {
        st_relax();
        return false;
    }
    return st_idle_step_slow(idle);
}
/* While spinning, one call of st_idle_embedder in so many reaches the embedder. */
#define ST_IDLE_EMBEDDER_EVERY 16u
/* Lets the embedder move what else it has to move: on every ST_IDLE_EMBEDDER_EVERYth call while spinning, on each call
 * once yielding has begun. True when it handled something, which is as good as an event. No lock may be held. */
static inline bool st_idle_embedder(struct st_idle *idle)
{
    if (!idle->embedder || (++idle->embedder_turn % ST_IDLE_EMBEDDER_EVERY != 0 && idle->count < idle->spin_limit))
        return false;
    return idle->embedder(idle->embedder_user) > 0;
}

#ifdef __cplusplus
}
#endif
#endif
