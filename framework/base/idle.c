/* How a waiting thread spends its time, and the decision how long it may spin. */
#include "config.h"

#include <strata/sdk/idle.h>

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "framework/base/context.h"
#include "framework/base/idle_policy.h"

/* A nap when nothing can wake us: long enough to leave the processor to others, short enough to be forgiven. */
#define NAP_US 50u
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
    *idle = (struct st_idle){.spin_limit = s->spin_limit,
                             .yield_limit = s->yield_limit,
                             .sleep_us = (uint32_t)s->base->sleep_max_us,
                             .word = {.fd = -1}};
    if (s->host && s->host->idle) {
        idle->embedder = s->host->idle;
        idle->embedder_user = s->host->user;
        if (idle->sleep_us > EMBEDDER_US)
            idle->sleep_us = EMBEDDER_US;
    }
}

bool st_idle_step_slow(struct st_idle *idle)
{
    uint32_t most = idle->spin_limit + idle->yield_limit;
    if (idle->count < most) {
        sched_yield();
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

/* Takes one module's way of waking into what the sleep will wait for. A futex and descriptors cannot be waited for
 * together, nor can two futexes on every kernel we support: then sleeps are short. */
static void add_wait(struct st_idle *idle, const struct st_btl_wait *w)
{
    if (w->word) {
        if (idle->word.word)
            idle->nap_only = true;
        else
            idle->word = *w;
    } else if (w->fd >= 0) {
        if (idle->n_fds == ST_IDLE_MAX_FDS)
            idle->nap_only = true;
        else
            idle->fds[idle->n_fds++] = w->fd;
    }
}

bool st_idle_arm(struct st_idle *idle, struct st_btl *const *btls, size_t n)
{
    idle->word = (struct st_btl_wait){.fd = -1};
    idle->n_fds = 0;
    idle->nap_only = false;
    for (idle->n_armed = 0; idle->n_armed < n; idle->n_armed++) {
        struct st_btl *btl = btls[idle->n_armed];
        if (!btl->ops->arm) {
            if (btl->ops->progress)
                idle->nap_only = true;
            continue;
        }
        struct st_btl_wait w = {.fd = -1};
        if (btl->ops->arm(btl, &w) != STRATA_OK) {
            st_idle_disarm(idle, btls, n);
            return false;
        }
        add_wait(idle, &w);
    }
    return true;
}

void st_idle_sleep(struct st_idle *idle)
{
    bool both = idle->word.word && idle->n_fds > 0;
    uint32_t us = idle->nap_only || both ? NAP_US : idle->sleep_us;
    if (us > idle->sleep_us)
        us = idle->sleep_us;
    struct timespec limit = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    if (idle->word.word) {
        /* Shared futex: the waker is another process. Any reason to return (woken, value changed, interrupted, time)
         * leads to the next poll. */
        syscall(SYS_futex, idle->word.word, FUTEX_WAIT, idle->word.expect, &limit, NULL, 0);
    } else {
        struct pollfd fds[ST_IDLE_MAX_FDS];
        for (int i = 0; i < idle->n_fds; i++)
            fds[i] = (struct pollfd){.fd = idle->fds[i], .events = POLLIN};
        ppoll(fds, (nfds_t)idle->n_fds, &limit, NULL);
    }
}

void st_idle_disarm(struct st_idle *idle, struct st_btl *const *btls, size_t n)
{
    size_t armed = idle->n_armed < n ? idle->n_armed : n;
    for (size_t i = 0; i < armed; i++)
        if (btls[i]->ops->disarm)
            btls[i]->ops->disarm(btls[i]);
    idle->n_armed = 0;
}
