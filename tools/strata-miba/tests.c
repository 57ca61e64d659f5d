/* The table of all tests, in the order in which `all` runs them. */
#include "config.h"
#include "tests.h"

#include <string.h>

const struct miba_test *const miba_tests[] = {
    &test_qp,
    &test_qp_connected,
    &test_cm,
    &test_cq,
    &test_registration,
    &test_registration_many,
    &test_post_send,
    &test_post_recv,
    &test_poll_empty,
    &test_poll_full,
    &test_latency,
    &test_bandwidth,
    &test_window,
    &test_both_ways,
    &test_cpu,
    &test_translation_1,
    &test_translation_2,
    &test_region,
    &test_qps,
    &test_segments,
    &test_scatter,
    &test_max_sge,
    &test_mtu,
    &test_events,
    &test_load,
    &test_inline,
    &test_srq,
    &test_immediate,
    &test_signalling,
    &test_lists,
    &test_atomics,
    &test_service,
    &test_visibility,
    &test_incast,
};

unsigned miba_tests_count(void)
{
    return sizeof miba_tests / sizeof *miba_tests;
}

const struct miba_test *miba_test_of(const char *name)
{
    for (unsigned i = 0; i < miba_tests_count(); i++)
        if (strcmp(miba_tests[i]->name, name) == 0)
            return miba_tests[i];
    return NULL;
}
