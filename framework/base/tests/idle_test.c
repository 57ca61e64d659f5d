/* Waiting: the policy, and the steps before a sleep. */
#define _GNU_SOURCE 1
#include <check.h>
#include <sched.h>
#include <unistd.h>

#include <strata/host.h>
#include <strata/sdk/idle.h>
#include "framework/base/context.h"
#include "framework/base/idle_policy.h"
#include "support/fake_yield.h"
#include "framework/base/run_queue.h"
#include "support/run_suite.h"

START_TEST(policy)
{
    uint32_t alone_spin, alone_yield, spin, yield;
    st_idle_policy(-1, -1, 2, 4, &alone_spin, &alone_yield);
    st_idle_policy(-1, -1, 8, 4, &spin, &yield);
    ck_assert_uint_ge(alone_spin, 1000);
    ck_assert_uint_le(spin, 16);
    ck_assert_uint_gt(yield, 0);
    st_idle_policy(7, 9, 8, 4, &spin, &yield);
    ck_assert_uint_eq(spin, 7);
    ck_assert_uint_eq(yield, 9);
    st_idle_policy(0, 0, 1, 4, &spin, &yield);
    ck_assert_uint_eq(spin, 0);
    ck_assert_uint_eq(yield, 0);
    cpu_set_t own;
    ck_assert_int_eq(sched_getaffinity(0, sizeof own, &own), 0);
    ck_assert_uint_ge(st_idle_processors(), (unsigned)CPU_COUNT(&own));
    ck_assert_uint_le(st_idle_processors(), (unsigned)sysconf(_SC_NPROCESSORS_CONF));
}
END_TEST

static const struct st_base_config config = {.sleep_max_us = 50000};

static struct st_idle begin(uint32_t spin, uint32_t yield)
{
    strata_t s = {.base = &config, .spin_limit = spin, .yield_limit = yield};
    struct st_idle idle;
    st_idle_begin(&idle, &s);
    return idle;
}

START_TEST(steps)
{
    fake_ns = 1;
    struct st_idle idle = begin(5, 3);
    for (int round = 0; round < 2; round++) {
        int n = 1;
        while (!st_idle_step(&idle))
            n++;
        ck_assert_int_eq(n, 8);
        ck_assert(st_idle_step(&idle)); /* an idle waiter goes straight back to sleep */
        st_idle_reset(&idle);
    }
    idle = begin(0, 0);
    ck_assert(st_idle_step(&idle));
    fake_ns = 0;
}
END_TEST

/* Where the processor is somebody else's for long, a waiter sleeps next, and yields again in the next wait. */
START_TEST(a_long_yield)
{
    struct st_idle idle = begin(2, 100);
    fake_ns = 1;
    for (int round = 0; round < 2; round++) {
        n_yields = 0;
        ck_assert(!st_idle_step(&idle));
        ck_assert(!st_idle_step(&idle));
        ck_assert(!st_idle_step(&idle));
        ck_assert_int_eq(n_yields, 2);
        yield_ns = ST_YIELD_LONG_NS + 1;
        ck_assert(!st_idle_step(&idle)); /* something may have come meanwhile */
        ck_assert(st_idle_step(&idle));
        ck_assert_int_eq(n_yields, 3);
        st_idle_reset(&idle);
    }
    fake_ns = 0;
}
END_TEST

/* A processor made by hand: yields let another thread run, or do not. */
static struct {
    uint64_t now_ns, used_ns, n_switches;
    bool others;
    int n_yields;
} machine;
static uint64_t now_ns(void)
{
    return machine.now_ns;
}
static void yield(void)
{
    machine.n_yields++;
    machine.now_ns += machine.others ? 4000 : 300;
    machine.used_ns += 700;
    machine.n_switches += machine.others;
}
static uint64_t switches(void)
{
    return 1 + machine.n_switches;
}
static uint64_t used_ns(void)
{
    return 1 + machine.used_ns;
}
static const struct st_run_queue_system by_hand = {now_ns, yield, switches, used_ns};
static const struct st_base_config chosen = {.sleep_max_us = 50000, .yield = -1},
                                   told = {.sleep_max_us = 50000, .yield = 7};

/* Steps until it is time to sleep. Each poll takes 40 ns. */
static int steps_to_sleep(struct st_idle *idle)
{
    int n = 1;
    machine.n_yields = 0;
    while (machine.now_ns += 40, machine.used_ns += 40, !st_idle_step(idle))
        n++;
    return n;
}

/* Each sleep takes 3 us of the processor, which are learned in one wait of sixteen. */
static void sleep_once(struct st_idle *idle)
{
    uint64_t used = st_idle_sleep_begin(idle);
    machine.used_ns += 3000;
    st_idle_sleep_end(idle, used);
}

START_TEST(where_others_run_it_sleeps_after_as_much)
{
    struct st_run_queue queue;
    struct st_idle idle;
    strata_t s = {.base = &chosen, .spin_limit = 2, .yield_limit = 100, .run_queue = &queue};
    st_run_queue_init(&queue, &by_hand);
    machine.others = true;
    st_idle_begin(&idle, &s);
    ck_assert_int_eq(steps_to_sleep(&idle), 2 + 100);
    ck_assert_int_eq(machine.n_yields, 100);
    sleep_once(&idle);
    ck_assert_int_eq(steps_to_sleep(&idle), 1); /* an idle waiter goes straight back to sleep */
    for (int i = 0; i < 3; i++) {
        st_idle_begin(&idle, &s);
        steps_to_sleep(&idle);
        /* A turn takes 700 ns, a sleep and its wake-up 6,000. */
        ck_assert_int_eq(machine.n_yields, 8);
        sleep_once(&idle);
    }
    st_idle_reset(&idle);
    steps_to_sleep(&idle);
    ck_assert_int_eq(machine.n_yields, 8);
    s.base = &told;
    s.yield_limit = 7;
    st_idle_begin(&idle, &s);
    steps_to_sleep(&idle);
    ck_assert_int_eq(machine.n_yields, 7); /* what the user says counts */
}
END_TEST

START_TEST(where_nobody_else_runs_it_spins)
{
    struct st_run_queue queue;
    struct st_idle idle;
    strata_t s = {.base = &chosen, .spin_limit = 2, .yield_limit = 3, .run_queue = &queue};
    st_run_queue_init(&queue, &by_hand);
    machine.others = false;
    st_idle_begin(&idle, &s);
    int n = steps_to_sleep(&idle), spin = 0;
    ck_assert_int_gt(n, 1000); /* as a rank that is alone, whatever the limit of turns */
    ck_assert_int_lt(machine.n_yields, n / 64);
    sleep_once(&idle);
    ck_assert_int_eq(steps_to_sleep(&idle), 1);
    st_idle_begin(&idle, &s); /* the next wait begins as the last one went on */
    machine.n_yields = 0;
    for (; machine.n_yields == 0; spin++)
        st_idle_step(&idle);
    ck_assert_int_ge(spin, 64);
    machine.others = true; /* somebody comes: noticed at the next yield, and then each poll is followed by one */
    while (machine.n_yields < 2)
        st_idle_step(&idle);
    for (int i = 3; i < 5; i++) {
        ck_assert(!st_idle_step(&idle));
        ck_assert_int_eq(machine.n_yields, i);
    }
    ck_assert(st_idle_step(&idle)); /* three of them let others run */
}
END_TEST

START_TEST(pauses_follow_the_queue)
{
    struct st_run_queue queue;
    strata_t s = {.base = &chosen, .spin_limit = 2, .run_queue = &queue};
    st_run_queue_init(&queue, &by_hand);
    machine.others = true;
    machine.n_yields = 0;
    for (unsigned empty = 0; empty < 10; empty++)
        strata_host_pause(&s, empty);
    ck_assert_int_eq(machine.n_yields, 8);
    machine.others = false;
    machine.n_yields = 0;
    for (int i = 0; i < 10000; i++) {
        machine.now_ns += 40;
        strata_host_pause(&s, 10 + (unsigned)i);
    }
    ck_assert_int_lt(machine.n_yields, 10000 / 64);
    machine.n_yields = 0;
    strata_host_yield(&s, 1); /* nobody else wants the processor */
    ck_assert_int_eq(machine.n_yields, 0);
}
END_TEST

/* The embedder may yield: after each of its turns the caller polls before it yields itself. */
static int embedder_idle(void *user)
{
    (void)user;
    return 0;
}
START_TEST(the_embedder_takes_turns_with_yields)
{
    strata_host_t host = {.idle = embedder_idle};
    strata_t s = {.base = &config, .spin_limit = 64, .yield_limit = 20, .host = &host};
    struct st_idle idle;
    int due = 0;
    st_idle_begin(&idle, &s);
    for (int i = 0; i < 63; i++) {
        due += st_idle_embedder_due(&idle);
        ck_assert(!st_idle_step(&idle));
    }
    ck_assert_int_eq(due, 63 / ST_IDLE_EMBEDDER_EVERY);
    st_idle_step(&idle);
    ck_assert(!st_idle_spins(&idle));
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(st_idle_embedder_due(&idle), i % 2 == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idle");
    TCase *t = tcase_create("all");
    tcase_add_test(t, policy);
    tcase_add_test(t, steps);
    tcase_add_test(t, a_long_yield);
    tcase_add_test(t, where_others_run_it_sleeps_after_as_much);
    tcase_add_test(t, where_nobody_else_runs_it_spins);
    tcase_add_test(t, pauses_follow_the_queue);
    tcase_add_test(t, the_embedder_takes_turns_with_yields);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
