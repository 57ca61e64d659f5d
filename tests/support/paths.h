/* Where the build under test is: tests run by make have STRATA_BUILD in the environment. */
#ifndef TEST_SUPPORT_PATHS_H
#define TEST_SUPPORT_PATHS_H

const char *test_build_dir(void);

#endif
