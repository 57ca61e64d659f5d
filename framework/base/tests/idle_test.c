/* Waiting: the policy, and the steps before a sleep. */
#define _GNU_SOURCE 1
#include <check.h>
#include <sched.h>
#include <unistd.h>

#include <strata/sdk/idle.h>
#include "framework/base/context.h"
#include "framework/base/idle_policy.h"
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
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idle");
    TCase *t = tcase_create("all");
    tcase_add_test(t, policy);
    tcase_add_test(t, steps);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
