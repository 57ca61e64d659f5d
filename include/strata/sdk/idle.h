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
    bool embedder_last;          /* the last step was the embedder's */
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
/* Whether the next step without an event pauses for no longer than a moment. */
static inline bool st_idle_spins(const struct st_idle *idle)
{
    return idle->count < idle->spin_limit;
}
/* While spinning, one call of st_idle_embedder_due in so many is true. */
#define ST_IDLE_EMBEDDER_EVERY 16u
/* Whether it is the embedder's turn to move what else it has to move: each ST_IDLE_EMBEDDER_EVERYth time while
 * spinning, else every other time. It may give the processor away itself, so the thread that waits polls before it
 * yields: what has come meanwhile must not wait for another turn. */
static inline bool st_idle_embedder_due(struct st_idle *idle)
{
    if (!idle->embedder)
        return false;
    if (st_idle_spins(idle))
        return ++idle->embedder_turn % ST_IDLE_EMBEDDER_EVERY == 0;
    idle->embedder_last = !idle->embedder_last;
    return idle->embedder_last;
}
/* Calls the embedder. True when it handled something, which is as good as an event. No lock may be held. */
static inline bool st_idle_embedder(struct st_idle *idle)
{
    return idle->embedder(idle->embedder_user) > 0;
}

#ifdef __cplusplus
}
#endif
#endif
