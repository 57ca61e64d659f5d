/* How a waiting thread spends its time before it sleeps, and the decision how long it may spin. */
#include "config.h"

#include <strata/sdk/clock.h>
#include <strata/sdk/idle.h>

#include <sched.h>
#include <unistd.h>

#include "framework/base/context.h"
#include "framework/base/idle_policy.h"

/* An embedder has things of its own to move: the longest sleep between two calls of strata_host_t.idle. */
#define EMBEDDER_US 100u

/* Defaults in polls and yields. Alone on its processor a rank spins for about a millisecond before it lets go; where
 * ranks share processors each poll without an event takes time from the rank that would produce it. */
#define SPIN_ALONE   10000u
#define YIELD_ALONE  200u
#define SPIN_SHARED  2u
#define YIELD_SHARED 100u

static void processors(pid_t pid, cpu_set_t *sum)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    if (sched_getaffinity(pid, sizeof(one), &one) == 0)
        CPU_OR(sum, sum, &one);
}

unsigned st_idle_processors(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    /* A rank bound to one processor says nothing about its siblings, but the launcher above it may use all those that
     * it deals out. */
    processors(0, &all);
    processors(getppid(), &all);
    int n = CPU_COUNT(&all);
    if (n < 1) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = online < 1 ? 1 : (int)online;
    }
    return (unsigned)n;
}

void st_idle_policy(int64_t spin, int64_t yield, unsigned n_local, unsigned n_processors, uint32_t *spin_limit,
                    uint32_t *yield_limit)
{
    bool crowded = n_local > n_processors;
    *spin_limit = spin >= 0 ? (uint32_t)spin : crowded ? SPIN_SHARED : SPIN_ALONE;
    *yield_limit = yield >= 0 ? (uint32_t)yield : crowded ? YIELD_SHARED : YIELD_ALONE;
}

void st_idle_begin(struct st_idle *idle, const strata_t *s)
{
    *idle = (struct st_idle){
        .spin_limit = s->spin_limit, .yield_limit = s->yield_limit, .sleep_us = (uint32_t)s->base->sleep_max_us};
    if (s->host && s->host->idle) {
        idle->embedder = s->host->idle;
        idle->embedder_user = s->host->user;
        if (idle->sleep_us > EMBEDDER_US)
            idle->sleep_us = EMBEDDER_US;
    }
}

/* Yields; after a long one nothing is left but to sleep. */
static void idle_yield(struct st_idle *idle, uint32_t most)
{
    uint64_t before = st_now_ns(), took;
    sched_yield();
    took = st_now_ns() - before;
    if (took > ST_YIELD_LONG_NS) {
        idle->count = most;
        idle->long_ns = took;
    }
}

bool st_idle_step_slow(struct st_idle *idle)
{
    uint32_t most = idle->spin_limit + idle->yield_limit;
    if (idle->count < most) {
        idle_yield(idle, most);
        return false;
    }
    idle->count = most; /* stays: the next poll without an event sleeps again */
    return true;
}

void strata_host_pause(const strata_t *s, unsigned empty)
{
    if (empty >= s->spin_limit)
        sched_yield();
    else
        st_relax();
}
