/* The two forms of a test: full, and short, which `./quickstart test` runs. STRATA_TEST_FORM says which; without it a
 * long test is run in full, a quick one in the short form. */
#ifndef TESTS_SUPPORT_FORM_H
#define TESTS_SUPPORT_FORM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of steps, sizes or seconds of this run: `shorter` in the short form, else `longer`. */
static inline unsigned long test_form(unsigned long shorter, unsigned long longer)
{
    const char *form = getenv("STRATA_TEST_FORM");
    return form && strcmp(form, "short") == 0 ? shorter : longer;
}

/* A quick test's main: what it runs takes the short form unless another is asked for. */
static inline void test_form_quick(void)
{
    setenv("STRATA_TEST_FORM", "short", 0);
}

/* The same as test_form for a quick test. */
static inline unsigned long test_quick_form(unsigned long shorter, unsigned long longer)
{
    return getenv("STRATA_TEST_FORM") ? test_form(shorter, longer) : shorter;
}

/* Seed of a random test: STRATA_TEST_SEED, else `otherwise`. */
static inline unsigned long test_seed(unsigned long otherwise)
{
    const char *seed = getenv("STRATA_TEST_SEED");
    return seed ? strtoul(seed, NULL, 0) : otherwise;
}

/* Prints which form runs, with which seed, and how much of the full form it does. */
static inline void test_form_print(unsigned long seed, unsigned long n, unsigned long full, const char *what)
{
    printf("%s form: seed %lu, %lu %s (full: %lu)\n", n == full ? "full" : "short", seed, n, what, full);
    fflush(stdout);
}

#endif
