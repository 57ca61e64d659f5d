/* How a waiting thread spends its time: spin, then yield, then sleep until a transport wakes it.
 *
 *     struct st_idle idle;
 *     st_idle_begin(&idle, context);
 *     while (!done) {
 *         lock; n = progress(); unlock;
 *         if (n) { st_idle_reset(&idle); continue; }
 *         if (st_idle_step(&idle)) {           // spun and yielded enough: sleep
 *             lock; ok = st_idle_arm(&idle, btls, n_btls); unlock;
 *             if (ok && !done) st_idle_sleep(&idle);
 *             lock; st_idle_disarm(&idle, btls, n_btls); unlock;
 *         }
 *     }
 *
 * Parameters: mca_base_spin (polls before yielding), mca_base_yield (yields before sleeping), mca_base_sleep_max_us.
 * The defaults depend on whether this machine runs more ranks than the process may use processors. */
#ifndef STRATA_SDK_IDLE_H
#define STRATA_SDK_IDLE_H

#include <strata/sdk/btl.h>

#define ST_IDLE_MAX_FDS 8

struct st_idle {
    uint32_t count;      /* polls without an event */
    uint32_t spin_limit; /* then yields begin */
    uint32_t yield_limit;
    uint32_t sleep_us; /* bound on one sleep */
    struct st_btl_wait word;
    int fds[ST_IDLE_MAX_FDS];
    int n_fds;
    size_t n_armed; /* modules that arm has prepared: the first so many */
    bool nap_only;  /* some transport cannot wake us: sleep briefly */
};

ST_API void st_idle_begin(struct st_idle *idle, const strata_t *s);
static inline void st_idle_reset(struct st_idle *idle)
{
    idle->count = 0;
}
/* Pauses or yields; true when it is time to sleep. */
ST_API bool st_idle_step_slow(struct st_idle *idle);
static inline bool st_idle_step(struct st_idle *idle)
{
    if (++idle->count < idle->spin_limit) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return false;
    }
    return st_idle_step_slow(idle);
}
/* Arms every module; false (and all disarmed) when something is pending. */
ST_API bool st_idle_arm(struct st_idle *idle, struct st_btl *const *btls, size_t n);
ST_API void st_idle_sleep(struct st_idle *idle);
ST_API void st_idle_disarm(struct st_idle *idle, struct st_btl *const *btls, size_t n);

#endif
