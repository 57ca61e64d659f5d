/* The two forms of a long test: full, and short, which `./quickstart test` runs. STRATA_TEST_FORM says which. */
#ifndef TESTS_SUPPORT_FORM_H
#define TESTS_SUPPORT_FORM_H

#include <stdlib.h>
#include <string.h>

/* Number of steps, sizes or seconds of this run: `shorter` in the short form, else `longer`. */
static inline unsigned long test_form(unsigned long shorter, unsigned long longer)
{
    const char *form = getenv("STRATA_TEST_FORM");
    return form && strcmp(form, "short") == 0 ? shorter : longer;
}

#endif
