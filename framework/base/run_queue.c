/* What yields and sleeps tell about the run queue. Contract: run_queue.h. */
#define _GNU_SOURCE 1
#include "framework/base/run_queue.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <strata/sdk/clock.h>
#include <strata/sdk/idle.h>

#define ASK_EVERY   256u /* yields */
#define ASK_FIRST   8u   /* of the first ASK_EVERY: the first answer may be far off */
#define TIME_EVERY  16u  /* yields that let others run */
#define WAITS_EVERY 16u  /* waits whose costs are measured */
#define YIELD_SHARE 16u  /* a yield while alone takes one part in so many of the wait */
#define STRETCH_MAX 4096u
#define TURNS_MIN   2u /* fewer are no turn to measure */
#define TURNS_MAX   1000u

static uint64_t linux_now(void)
{
    return st_now_ns();
}

static void linux_yield(void)
{
    sched_yield();
}

static uint64_t linux_switches(void)
{
    struct rusage r;
    return getrusage(RUSAGE_THREAD, &r) == 0 ? (uint64_t)r.ru_nivcsw : 0;
}

static uint64_t linux_used(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const struct st_run_queue_system st_run_queue_linux = {
    .now_ns = linux_now, .yield = linux_yield, .switches = linux_switches, .used_ns = linux_used};

void st_run_queue_init(struct st_run_queue *q, const struct st_run_queue_system *system)
{
    *q = (struct st_run_queue){.system = system, .stretch = 1};
}

static uint32_t run_queue_get(const ST_ATOMIC(uint32_t) * field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}
static void run_queue_set(ST_ATOMIC(uint32_t) * field, uint32_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

/* Counts in a field; returns the count before. */
static uint32_t run_queue_count(ST_ATOMIC(uint32_t) * field)
{
    uint32_t n = run_queue_get(field);
    run_queue_set(field, n + 1);
    return n;
}

static uint32_t at_least_1(uint64_t ns)
{
    return ns < 1 ? 1u : ns > INT32_MAX ? (uint32_t)INT32_MAX : (uint32_t)ns;
}

/* The lower end of the times seen: down at once, up by a sixteenth, since interrupts make many of them longer. */
static void learn_low(ST_ATOMIC(uint32_t) * field, uint32_t took)
{
    uint32_t old = run_queue_get(field), most = old + old / 16 + 1;
    run_queue_set(field, old != 0 && most < took ? most : took);
}

/* A mean of the last eight or so. */
static void learn_mean(ST_ATOMIC(uint32_t) * field, uint64_t ns)
{
    uint32_t old = run_queue_get(field), now = at_least_1(ns);
    if (ns != 0)
        run_queue_set(field, old == 0 ? now : at_least_1(((uint64_t)old * 7 + now) / 8));
}

/* A yield that takes longer let another run; 0: its time does not tell. */
static uint32_t run_queue_boundary(const struct st_run_queue *q)
{
    uint32_t alone = run_queue_get(&q->alone_ns), shared = run_queue_get(&q->shared_ns);
    if (alone == 0)
        return shared / 2;
    if (shared == 0)
        return 2 * alone;
    return shared > alone ? alone + (shared - alone) / 2 : 0;
}

static void run_queue_adapt(struct st_run_queue *q, bool ran, uint32_t took, uint64_t between)
{
    uint32_t stretch = run_queue_get(&q->stretch);
    if (ran) {
        run_queue_set(&q->stretch, 1);
        run_queue_set(&q->untimed, TIME_EVERY - 1);
    } else if (between < (uint64_t)YIELD_SHARE * took && stretch < STRETCH_MAX) {
        run_queue_set(&q->stretch, 2 * stretch);
    }
}

/* What the kernel says of a yield. */
static bool yield_asked(struct st_run_queue *q, uint64_t before, uint32_t took, uint64_t used_ns)
{
    uint64_t after = q->system->switches();
    if (after == 0)
        return true;
    if (after == before) {
        learn_low(&q->alone_ns, took);
        return false;
    }
    learn_low(&q->shared_ns, took);
    learn_mean(&q->turn_ns, used_ns);
    return true;
}

static bool yield_timed(struct st_run_queue *q, bool asked)
{
    const struct st_run_queue_system *system = q->system;
    uint32_t limit = run_queue_boundary(q);
    asked = asked || limit == 0;
    uint64_t before = asked ? system->switches() : 0, used = asked ? system->used_ns() : 0;
    uint64_t begin = system->now_ns();
    system->yield();
    uint64_t end = system->now_ns();
    uint32_t took = at_least_1(end - begin);
    bool ran = took > limit;
    if (asked) {
        used = system->used_ns() - used;
        ran = yield_asked(q, before, took, used);
    }
    run_queue_adapt(q, ran, took, begin - atomic_load_explicit(&q->last_ns, memory_order_relaxed));
    atomic_store_explicit(&q->last_ns, end, memory_order_relaxed);
    return ran;
}

bool st_run_queue_yield(struct st_run_queue *q)
{
    uint32_t n = run_queue_count(&q->n_yields);
    bool asked = n % (n < ASK_EVERY ? ASK_FIRST : ASK_EVERY) == 0;
    uint32_t untimed = run_queue_get(&q->untimed);
    if (untimed == 0 || asked)
        return yield_timed(q, asked);
    run_queue_set(&q->untimed, untimed - 1);
    q->system->yield();
    return true;
}

uint32_t st_run_queue_stretch(const struct st_run_queue *q)
{
    return run_queue_get(&q->stretch);
}

void st_run_queue_pause(struct st_run_queue *q, uint32_t polls)
{
    uint32_t stretch = run_queue_get(&q->stretch);
    if (polls <= 1) /* a wait begins */
        run_queue_set(&q->skipped, 0);
    if (stretch > 1 && run_queue_count(&q->skipped) < stretch) {
        st_relax();
        return;
    }
    run_queue_set(&q->skipped, 0);
    st_run_queue_yield(q);
}

bool st_run_queue_samples(struct st_run_queue *q)
{
    return run_queue_count(&q->n_waits) % WAITS_EVERY == 0;
}

void st_run_queue_sleep_cost(struct st_run_queue *q, uint64_t ns)
{
    learn_mean(&q->sleep_ns, ns);
}

uint32_t st_run_queue_turns(const struct st_run_queue *q, uint32_t otherwise)
{
    uint64_t turn = run_queue_get(&q->turn_ns), sleep = run_queue_get(&q->sleep_ns);
    if (turn == 0 || sleep == 0)
        return otherwise;
    uint64_t turns = 2 * sleep / turn;
    return turns < TURNS_MIN ? TURNS_MIN : turns > TURNS_MAX ? TURNS_MAX : (uint32_t)turns;
}
