/* Sets of peers, written as numbers and ranges. */
#include <check.h>

#include <strata/sdk/peer_ranges.h>
#include "support/run_suite.h"

START_TEST(members)
{
    struct st_peer_ranges set;
    const char *mistake = NULL;

    ck_assert_int_eq(st_peer_ranges_parse("0,4-7,4294967295,9-9", &set, &mistake), STRATA_OK);
    ck_assert_uint_eq(set.n, 4);
    for (uint32_t peer = 0; peer < 12; peer++)
        ck_assert_int_eq(st_peer_ranges_has(&set, peer), peer == 0 || (peer >= 4 && peer <= 7) || peer == 9);
    ck_assert(st_peer_ranges_has(&set, UINT32_MAX));
    st_peer_ranges_free(&set);
    ck_assert(!st_peer_ranges_has(&set, 0));
    st_peer_ranges_free(&set);
}
END_TEST

START_TEST(nobody)
{
    struct st_peer_ranges set;
    const char *mistake = NULL;

    ck_assert_int_eq(st_peer_ranges_parse("", &set, &mistake), STRATA_OK);
    ck_assert_int_eq(st_peer_ranges_parse(NULL, &set, &mistake), STRATA_OK);
    ck_assert(!st_peer_ranges_has(&set, 0));
}
END_TEST

static const struct {
    const char *text;
    int at; /* where the mistake is */
} wrong[] = {{",", 0},    {"1,", 2},   {"-1", 0},   {"1-", 0},         {"1--2", 0},           {"3-1", 0},
             {"1 ,2", 1}, {"1,a", 2},  {"1,2x", 3}, {"4294967296", 0}, {"1,5-4294967296", 2}, {"0,,1", 2},
             {"0x1", 1},  {"1-2-3", 3}};

START_TEST(mistakes)
{
    struct st_peer_ranges set;
    const char *mistake = NULL, *text = wrong[_i].text;

    ck_assert_int_eq(st_peer_ranges_parse(text, &set, &mistake), STRATA_ERR_PARAM);
    ck_assert_int_eq(mistake - text, wrong[_i].at);
    ck_assert_uint_eq(set.n, 0);
    ck_assert_ptr_null(set.range);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("peer_ranges");
    TCase *tc = tcase_create("peer_ranges");

    tcase_add_test(tc, members);
    tcase_add_test(tc, nobody);
    tcase_add_loop_test(tc, mistakes, 0, (int)(sizeof(wrong) / sizeof(wrong[0])));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
