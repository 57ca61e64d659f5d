/* A reduction that does not commute, for tests of collectives: composition of maps x -> a x + b; with a == 1 it is an
 * addition. */
#ifndef TESTS_SUPPORT_COLL_PAIR_H
#define TESTS_SUPPORT_COLL_PAIR_H

#include "support/suite.h"

struct pair {
    uint32_t a, b;
};

static inline void compose(void *arg, const void *in, void *inout, size_t count)
{
    const struct pair *x = in;
    struct pair *y = inout;
    CHECK(arg == NULL);
    for (size_t i = 0; i < count; i++)
        y[i] = (struct pair){x[i].a * y[i].a, x[i].a * y[i].b + x[i].b};
}

#endif
