/* The end of every main of Check's tests. */
#ifndef RUN_SUITE_H
#define RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Seconds after which a test is ended: a safety net for one that hangs. The constructor runs before tcase_create reads
 * the variable; `make check` sets it too. */
__attribute__((constructor)) static void set_safety_net(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "300", 0);
}

/* Runs all of it, as verbosely as CK_VERBOSITY says, in processes of their own unless CK_FORK=no. 0 when nothing
 * failed: main's result. Frees the suite. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
