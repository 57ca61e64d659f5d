/* Every status has a text of its own. */
#include <check.h>
#include <string.h>

#include <strata/status.h>
#include "support/run_suite.h"

START_TEST(texts)
{
    for (int a = STRATA_ERR_PROTOCOL; a <= STRATA_OK; a++) {
        ck_assert_uint_gt(strlen(strata_strerror(a)), 0);
        ck_assert_str_ne(strata_strerror(a), strata_strerror(1));
        for (int b = STRATA_ERR_PROTOCOL; b < a; b++)
            ck_assert_str_ne(strata_strerror(a), strata_strerror(b));
    }
    ck_assert_str_eq(strata_strerror(STRATA_ERR_PROTOCOL - 1), strata_strerror(1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("status");
    TCase *t = tcase_create("all");
    tcase_add_test(t, texts);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
