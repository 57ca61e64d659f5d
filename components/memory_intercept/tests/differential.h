/* Random steps with the hooks, and once more while they are disabled on purpose: then stale pages must be found, else
 * the first would prove nothing. */
#ifndef MEMORY_INTERCEPT_TESTS_DIFFERENTIAL_H
#define MEMORY_INTERCEPT_TESTS_DIFFERENTIAL_H

#define _GNU_SOURCE
#include <check.h>
#include "support/form.h"
#include "support/memory_steps.h"
#include "support/run_suite.h"

static uint64_t steps_to_do;
static int threads_to_use;

/* No more is kept than there are descriptors for. */
#define CAPS " rcache_tree_max_entries=100"

START_TEST(nothing_stale_with_hooks)
{
    struct result r = run_walkers("memory=intercept rcache=tree" CAPS, steps_to_do, threads_to_use);
    CHECK(r.stale == 0 && r.sent > steps_to_do / 4 && r.hits > r.sent / 20 && r.invalidations > 1000);
    r = run_walkers("memory=intercept rcache=tree" CAPS, steps_to_do / 10, 1); /* with the heap */
    CHECK(r.stale == 0);
}
END_TEST

START_TEST(stale_without_hooks)
{
    struct result r = run_walkers("memory=^import,intercept rcache=tree" CAPS, steps_to_do / 10, threads_to_use);
    CHECK(r.stale > 0);
}
END_TEST

START_TEST(nothing_stale_when_nothing_is_kept)
{
    struct result r = run_walkers("rcache=none", steps_to_do / 10, threads_to_use);
    CHECK(r.stale == 0 && r.hits == 0);
}
END_TEST

static inline int differential_main(uint64_t steps, int threads)
{
    steps_to_do = steps;
    threads_to_use = threads;
    if (test_sanitized()) {
        printf("SKIP: a sanitizer's malloc makes system calls of its own\n");
        return 77;
    }
    Suite *suite = suite_create("memory_intercept, random steps");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, test_timeout(900));
    tcase_add_test(t, nothing_stale_with_hooks);
    tcase_add_test(t, stale_without_hooks);
    tcase_add_test(t, nothing_stale_when_nothing_is_kept);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}

#endif
