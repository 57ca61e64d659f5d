/* How a waiting thread spends its time before it sleeps: it spins, then it yields.
 *
 *     struct st_idle idle;
 *     st_idle_begin(&idle, context);
 *     while (!done)
 *         if (progress() > 0)
 *             st_idle_reset(&idle);
 *         else if (st_idle_step(&idle)) {
 *             uint64_t used = st_idle_sleep_begin(&idle);
 *             sleep;                           // for idle.sleep_us at most
 *             st_idle_sleep_end(&idle, used);
 *         }
 *
 * Parameters: mca_base_spin (polls before yielding), mca_base_yield (yields before sleeping), mca_base_sleep_max_us.
 * The defaults depend on whether this machine runs more ranks than the process may use processors. Where it does, the
 * yields themselves tell whether another thread wants the processor: docs/design/waiting.md. */
#ifndef STRATA_SDK_IDLE_H
#define STRATA_SDK_IDLE_H

#include <strata/sdk/btl.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_run_queue;

/* State of one wait; on the stack of the waiting thread. */
struct st_idle {
    uint32_t count;              /* polls without an event */
    uint32_t next_yield;         /* count of the next yield */
    uint32_t spin_limit;         /* count of the first one */
    uint32_t yield_limit;        /* yields before sleeping begins; with a queue those that let another thread run */
    uint32_t most;               /* count at which sleeping begins, whatever the yields did */
    uint32_t sleep_us;           /* bound on one sleep */
    uint64_t long_ns;            /* duration of the last yield, if it was long; else 0: idle_policy.h */
    uint32_t turns;              /* yields that let another thread run */
    struct st_run_queue *queue;  /* NULL: yields are not evaluated */
    bool sampled;                /* this wait measures a sleep */
    bool embedder_last;          /* the last step was the embedder's */
    int (*embedder)(void *user); /* strata_host_t.idle or NULL: st_idle_embedder */
    void *embedder_user;         /* its argument */
    uint32_t embedder_turn;      /* counts steps */
};

/* Pauses between two polls without an event. Without the pause an x86-64 has many polls in flight when the cache line
 * changes, and discards them all: measured, the pause halves the latency. On aarch64 another thread of the core may
 * run.
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
    idle->next_yield = idle->spin_limit;
    idle->turns = 0;
}
/* From now on each poll without an event is followed by a sleep. */
static inline void st_idle_sleep_soon(struct st_idle *idle)
{
    idle->next_yield = idle->spin_limit = idle->yield_limit = idle->most = 0;
}
/* Pauses or yields; true when it is time to sleep. */
ST_API bool st_idle_step_slow(struct st_idle *idle);
/* Nothing happened: pauses or yields; true when it is time to sleep. */
static inline bool st_idle_step(struct st_idle *idle)
{
    if (++idle->count < idle->next_yield) {
        st_relax();
        return false;
    }
    return st_idle_step_slow(idle);
}
/* Called before a sleep: some waits measure its cost in processor time. The result is passed to st_idle_sleep_end. */
ST_API uint64_t st_idle_sleep_begin(struct st_idle *idle);
/* After a sleep. */
ST_API void st_idle_sleep_end(struct st_idle *idle, uint64_t used_ns);

/* Whether the next step without an event only spins. */
static inline bool st_idle_spins(const struct st_idle *idle)
{
    return idle->count < idle->next_yield;
}
/* While spinning, one call of st_idle_embedder_due in so many is true. */
#define ST_IDLE_EMBEDDER_EVERY 16u
/* Whether the embedder's other work is due: every ST_IDLE_EMBEDDER_EVERYth time while spinning, else every other time.
 * The embedder may yield the processor itself, so the waiting thread polls before it yields, for messages that have
 * arrived meanwhile. */
static inline bool st_idle_embedder_due(struct st_idle *idle)
{
    if (!idle->embedder)
        return false;
    if (st_idle_spins(idle))
        return ++idle->embedder_turn % ST_IDLE_EMBEDDER_EVERY == 0;
    idle->embedder_last = !idle->embedder_last;
    return idle->embedder_last;
}
/* Calls the embedder. True: it handled something, which counts as an event. No lock may be held. */
static inline bool st_idle_embedder(struct st_idle *idle)
{
    return idle->embedder(idle->embedder_user) > 0;
}

#ifdef __cplusplus
}
#endif
#endif
