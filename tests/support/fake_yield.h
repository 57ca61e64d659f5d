/* Yields that are counted and take as long as the test says, in place of the C library's, on a clock that stands still.
 * Included by one file of a program. */
#ifndef TEST_SUPPORT_FAKE_YIELD_H
#define TEST_SUPPORT_FAKE_YIELD_H

#include <sched.h>
#include "support/fake_clock.h"

static int n_yields;
static uint64_t yield_ns; /* that the next one takes */

int sched_yield(void)
{
    n_yields++;
    fake_ns += yield_ns;
    yield_ns = 0;
    return 0;
}

#endif
