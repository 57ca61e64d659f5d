/* How a waiting thread spends its time before it sleeps, and the decision how long it may spin. */
#include "config.h"

#include <strata/sdk/idle.h>

#include <sched.h>
#include <unistd.h>

#include <strata/sdk/clock.h>
#include "framework/base/context.h"
#include "framework/base/idle_policy.h"
#include "framework/base/run_queue.h"

/* An embedder has things of its own to move: the longest sleep between two calls of strata_host_t.idle. */
#define EMBEDDER_US 100u

/* Defaults in polls and yields. Alone on its processor a rank spins for about a millisecond before it lets go; where
 * ranks share processors each poll without an event takes time from the rank that would produce it. */
#define SPIN_ALONE   10000u
#define YIELD_ALONE  200u
#define SPIN_SHARED  2u
#define YIELD_SHARED 100u

static void idle_processors(pid_t pid, cpu_set_t *sum)
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
    idle_processors(0, &all);
    idle_processors(getppid(), &all);
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

/* The yields of this wait are looked at, and one of the last wait says how long to spin. While nobody else wants the
 * processor the wait goes on for as long as that of a rank that is alone. */
static void idle_look(struct st_idle *idle, const strata_t *s)
{
    struct st_run_queue *queue = s->run_queue;
    idle->queue = queue;
    idle->sampled = st_run_queue_samples(queue);
    uint32_t stretch = st_run_queue_stretch(queue);
    if (stretch > 1)
        idle->spin_limit += stretch;
    if (s->base->yield < 0)
        idle->yield_limit = st_run_queue_turns(queue, idle->yield_limit);
    idle->most = SPIN_ALONE + YIELD_ALONE;
}

void st_idle_begin(struct st_idle *idle, const strata_t *s)
{
    *idle = (struct st_idle){.spin_limit = s->spin_limit,
                             .yield_limit = s->yield_limit,
                             .most = s->spin_limit + s->yield_limit,
                             .sleep_us = (uint32_t)s->base->sleep_max_us};
    if (s->run_queue)
        idle_look(idle, s);
    idle->next_yield = idle->spin_limit;
    if (s->host && s->host->idle) {
        idle->embedder = s->host->idle;
        idle->embedder_user = s->host->user;
        if (idle->sleep_us > EMBEDDER_US)
            idle->sleep_us = EMBEDDER_US;
    }
}

/* Yields with an eye on the run queue. */
static void idle_turn(struct st_idle *idle)
{
    idle->turns += st_run_queue_yield(idle->queue);
    idle->next_yield = idle->count + st_run_queue_stretch(idle->queue);
}

uint64_t st_yield_long(void)
{
    uint64_t before = st_now_ns(), took;
    sched_yield();
    took = st_now_ns() - before;
    return took > ST_YIELD_LONG_NS ? took : 0;
}

/* Yields; after a long one nothing is left but to sleep. */
static void idle_yield(struct st_idle *idle)
{
    idle->long_ns = st_yield_long();
    if (idle->long_ns)
        idle->count = idle->most;
}

bool st_idle_step_slow(struct st_idle *idle)
{
    if (idle->count >= idle->most || (idle->queue && idle->turns >= idle->yield_limit)) {
        if (idle->count > idle->most)
            idle->count = idle->next_yield = idle->most;
        return true; /* and so does the next poll without an event */
    }
    if (idle->queue)
        idle_turn(idle);
    else
        idle_yield(idle);
    return false;
}

uint64_t st_idle_sleep_begin(struct st_idle *idle)
{
    return idle->sampled ? idle->queue->system->used_ns() : 0;
}

void st_idle_sleep_end(struct st_idle *idle, uint64_t used_ns)
{
    if (used_ns)
        st_run_queue_sleep_cost(idle->queue, idle->queue->system->used_ns() - used_ns);
    idle->sampled = false;
}

void strata_host_pause(const strata_t *s, unsigned empty)
{
    if (empty < s->spin_limit)
        st_relax();
    else if (s->run_queue)
        st_run_queue_pause(s->run_queue, empty - s->spin_limit + 1);
    else
        sched_yield();
}

void strata_host_yield(const strata_t *s, unsigned empty)
{
    if (s->run_queue)
        st_run_queue_pause(s->run_queue, empty);
    else
        sched_yield();
}
