/* A suite of cases for clients of the worker. A file of tests/conformance that ends in OVER_SUITE is a test program
 * (over_transports.h), and its cases are part of the tool strata-conformance, which compiles it with OVER_COLLECTED. */
#ifndef TEST_SUPPORT_OVER_SUITE_H
#define TEST_SUPPORT_OVER_SUITE_H

#include "support/world.h"

enum {
    OVER_QUIET = 1u << 0,     /* errors are logged on purpose */
    OVER_PROCESSES = 1u << 1, /* ranks may be processes: they share no variable, and every peer is alive afterwards */
    OVER_MORE = 1u << 2       /* ranks may be more than `ranks`, up to OVER_MOST */
};
/* Of a suite. */
enum {
    OVER_PUTS = 1u << 0, /* its clients put: it is left out where the transport cannot */
    OVER_TURNS = 1u << 1 /* its settings of btl_shuffle are alike: they take turns where test_turns() says so */
};
enum { OVER_MOST = 16 };

struct over_case {
    const char *name;
    tw_body_fn body; /* r->arg: the settings, a string */
    int ranks;
    strata_thread_level_t level;
    unsigned flags; /* OVER_* */
};

struct over_suite {
    const char *name;
    const struct over_case *cases;
    int n;
    unsigned flags; /* OVER_PUTS, OVER_TURNS */
};

#ifdef OVER_COLLECTED
#define OVER_SUITE(name, flags, cases, ...)                                                                            \
    const struct over_suite over_##name = {#name, cases, (int)(sizeof(cases) / sizeof(cases)[0]), flags}
#endif

#endif
