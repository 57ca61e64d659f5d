/* What is asked of libibverbs for processes that fork, with a libibverbs of an older kernel's made up here. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <infiniband/verbs.h>
#include "device/device.h"
#include "support/run_suite.h"

static enum ibv_fork_status status;
static int answer, asked;

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return status;
}

int ibv_fork_init(void)
{
    asked++;
    return answer;
}

START_TEST(as_the_kernel_needs)
{
    status = IBV_FORK_UNNEEDED;
    ck_assert_int_eq(ib_fork_prepare(true), 0);
    ck_assert_int_eq(ib_fork_prepare(false), 0);
    status = IBV_FORK_ENABLED;
    ck_assert_int_eq(ib_fork_prepare(true), 0);
    ck_assert_int_eq(asked, 0);
    status = IBV_FORK_DISABLED;
    ck_assert_int_eq(ib_fork_prepare(true), 0);
    ck_assert_int_eq(asked, 1);
}
END_TEST

START_TEST(what_cannot_be_is_said)
{
    status = IBV_FORK_DISABLED;
    ck_assert_int_eq(ib_fork_prepare(false), EOPNOTSUPP);
    ck_assert_int_eq(asked, 0);
    ck_assert_str_eq(ib_fork_why(EOPNOTSUPP), "btl_openib_fork_support is off");
    answer = EINVAL;
    ck_assert_int_eq(ib_fork_prepare(true), EINVAL);
    ck_assert_str_eq(ib_fork_why(EINVAL), "somebody has registered memory before");
    ck_assert(*ib_fork_why(ENOSYS) != 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("openib_fork");
    TCase *tc = tcase_create("fork");
    tcase_add_test(tc, as_the_kernel_needs);
    tcase_add_test(tc, what_cannot_be_is_said);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
