/* The table of all tests, in the order in which `all` runs them. */
#include "config.h"
#include "tests.h"

#include <string.h>

const struct miba_test *const miba_tests[] = {
    &test_qp,        &test_qp_connected, &test_cq,         &test_registration, &test_registration_many,
    &test_post_send, &test_post_recv,    &test_poll_empty, &test_poll_full,    &test_latency,
    &test_bandwidth, &test_window,       &test_both_ways,
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
