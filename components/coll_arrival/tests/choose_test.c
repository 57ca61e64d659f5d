/* The choice of a form, without a communicator. */
#include "choose.h"

#include <check.h>
#include "support/run_suite.h"

START_TEST(classes_of_times)
{
    static const struct {
        uint64_t us;
        unsigned class;
    } cases[] = {{0, 0},     {1, 1},     {2, 2},      {3, 2},      {4, 3},
                 {1023, 10}, {1024, 11}, {16383, 14}, {16384, 15}, {1 << 30, 15}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_uint_eq(arrival_skew_class(cases[i].us * 1000), cases[i].class);
        ck_assert_uint_eq(arrival_skew_class(cases[i].us * 1000 + 999), cases[i].class);
    }
    ck_assert_uint_lt(arrival_skew_class(UINT64_MAX), SKEW_CLASSES);
}
END_TEST

START_TEST(limit_of_each_form)
{
    ck_assert_uint_eq(arrival_choose_limit(FORM_DIRECT, 4096, 0, 256, 1000), 0);
    ck_assert_uint_eq(arrival_choose_limit(FORM_PAP_DIRECT, 4096, 0, 256, 1000), 0);
    ck_assert_uint_eq(arrival_choose_limit(FORM_PAP_BRUCK, 4096, 0, 256, 1000), 0);
    /* By name, whatever the skew. */
    ck_assert_uint_eq(arrival_choose_limit(FORM_SHM_DIRECT, 4096, 15, 256, 1000), 4096);
    ck_assert_uint_eq(arrival_choose_limit(FORM_PAP_SHM_DIRECT, 4096, 15, 256, 1000), 4096);
    /* By size and skew. */
    ck_assert_uint_eq(arrival_choose_limit(FORM_AUTO, 4096, 10, 256, 1000), 256);
    ck_assert_uint_eq(arrival_choose_limit(FORM_AUTO, 64, 10, 256, 1000), 64);
    ck_assert_uint_eq(arrival_choose_limit(FORM_AUTO, 0, 0, 256, 1000), 0);
    ck_assert_uint_eq(arrival_choose_limit(FORM_AUTO, 4096, 11, 256, 1000), 0);
    ck_assert_uint_eq(arrival_choose_limit(FORM_AUTO, 4096, 1, 256, 0), 0);
    ck_assert_uint_eq(arrival_choose_limit(FORM_AUTO, 4096, 0, 256, 0), 256);
    /* The last class has no upper end: a limit there leaves nothing out. */
    ck_assert_uint_eq(arrival_choose_limit(FORM_AUTO, 4096, 15, 256, 16384), 256);
}
END_TEST

START_TEST(aware_forms)
{
    ck_assert(!arrival_is_aware(FORM_DIRECT) && !arrival_is_aware(FORM_SHM_DIRECT));
    ck_assert(arrival_is_aware(FORM_PAP_DIRECT) && arrival_is_aware(FORM_PAP_SHM_DIRECT));
    ck_assert(arrival_is_aware(FORM_AUTO));
    ck_assert(!arrival_is_aware(FORM_BRUCK) && !arrival_is_aware(FORM_DOUBLING));
    ck_assert(arrival_is_aware(FORM_PAP_BRUCK) && arrival_is_aware(FORM_PAP_DOUBLING));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("choose");
    TCase *tc = tcase_create("choose");
    tcase_add_test(tc, classes_of_times);
    tcase_add_test(tc, limit_of_each_form);
    tcase_add_test(tc, aware_forms);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
