/* Waiting: the policy, and the steps before a sleep. */
#define _GNU_SOURCE 1
#include <check.h>
#include <sched.h>
#include <unistd.h>

#include <strata/sdk/idle.h>
#include "framework/base/context.h"
#include "framework/base/idle_policy.h"
#include "support/fake_clock.h"
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

static unsigned n_yields;
static uint64_t yield_ns; /* that the next one takes */

/* In place of the C library's. */
int sched_yield(void)
{
    n_yields++;
    fake_ns += yield_ns;
    yield_ns = 0;
    return 0;
}

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
        ck_assert_uint_eq(n_yields, 2);
        yield_ns = ST_YIELD_LONG_NS + 1;
        ck_assert(!st_idle_step(&idle)); /* something may have come meanwhile */
        ck_assert(st_idle_step(&idle));
        ck_assert_uint_eq(n_yields, 3);
        st_idle_reset(&idle);
    }
    fake_ns = 0;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idle");
    TCase *t = tcase_create("all");
    tcase_add_test(t, policy);
    tcase_add_test(t, steps);
    tcase_add_test(t, a_long_yield);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
