/* Selection lists, and the nearest name. */
#include "framework/mca/internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "support/run_suite.h"

START_TEST(lists)
{
    static const struct {
        const char *text;
        bool exclude;
        size_t n;
    } good[] = {{"", false, 0},  {"  ", false, 0},  {"a", false, 1},       {"a,b", false, 2},
                {"^a", true, 1}, {"^a,b", true, 2}, {" a , b ", false, 2}, {"a,,b,", false, 2}};
    static const char *const bad[] = {"a,^b", "^a,^b", "^", "^,", ",", "a,b,^c"};
    struct st_selection sel;
    char why[200];
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        ck_assert_msg(!st_selection_parse(good[i].text, &sel, why, sizeof(why)), "\"%s\"", good[i].text);
        ck_assert_uint_eq(sel.n, good[i].n);
        ck_assert(sel.exclude == good[i].exclude);
        st_selection_free(&sel);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_msg(st_selection_parse(bad[i], &sel, why, sizeof(why)) == STRATA_ERR_PARAM, "\"%s\"", bad[i]);
}
END_TEST

static bool admits(const char *list, const char *name, bool *by_name)
{
    struct st_selection sel;
    char why[200];
    ck_assert(!st_selection_parse(list, &sel, why, sizeof(why)));
    bool yes = st_selection_admits(&sel, name, by_name);
    st_selection_free(&sel);
    return yes;
}

START_TEST(admission)
{
    bool by_name;
    ck_assert(admits("", "sm", &by_name) && !by_name);
    ck_assert(admits("self,sm", "sm", &by_name) && by_name);
    ck_assert(!admits("self", "sm", &by_name) && !by_name);
    ck_assert(!admits("^sm", "sm", &by_name) && !by_name);
    ck_assert(admits("^sm", "self", &by_name) && !by_name);
    ck_assert(!admits("s", "sm", &by_name)); /* whole names */
}
END_TEST

START_TEST(distances)
{
    ck_assert_uint_eq(st_edit_cost("", ""), 0);
    ck_assert_uint_eq(st_edit_cost("", "abc"), 12);
    ck_assert_uint_eq(st_edit_cost("kitten", "sitting"), 12);
    ck_assert_uint_eq(st_edit_cost("sm", "sm"), 0);
    ck_assert_uint_eq(st_edit_cost("slef", "self"), 3);
    char longer[300];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ck_assert_uint_le(st_edit_cost(longer, "x"), 4 * 300); /* bounded work, no overrun */
}
END_TEST

START_TEST(nearest)
{
    static const char *const names[] = {"self", "sm", "shuffle", "openib"};
    ck_assert_str_eq(st_info_nearest("slef", names, 4), "self");
    ck_assert_str_eq(st_info_nearest("shufle", names, 4), "shuffle");
    ck_assert_str_eq(st_info_nearest("SM", names, 4) ? st_info_nearest("SM", names, 4) : "sm", "sm");
    ck_assert_ptr_null(st_info_nearest("qqqqqqq", names, 4));
    ck_assert_ptr_null(st_info_nearest("x", names, 0));
    static const char *const frameworks[] = {"bml", "btl", "pml", "rte", "help"};
    ck_assert_str_eq(st_info_nearest("blt", frameworks, 5), "btl"); /* a swap before a replacement */
    ck_assert_ptr_null(st_info_nearest("foo", frameworks, 5));
    ck_assert_ptr_null(st_info_nearest("all", frameworks, 5));
    ck_assert_ptr_null(st_info_nearest("sm,tcp", names, 4));
    ck_assert_ptr_null(st_info_nearest("s", names, 4));
    static const char *const parameters[] = {"btl_sm_eager_limit", "btl_sm_eager_copy"};
    ck_assert_str_eq(st_info_nearest("btl_sm_egaer_limt", parameters, 2), "btl_sm_eager_limit");
}
END_TEST

START_TEST(unknown_components)
{
    static const strata_setting_t cases[] = {{"btl", "nosuch"}, {"btl", "^nosuch"}, {"btl", "a,^b"}};
    static const int want[] = {STRATA_ERR_PARAM, STRATA_ERR_PARAM, STRATA_ERR_PARAM};
    for (size_t i = 0; i < 3; i++) {
        strata_config_t config = STRATA_CONFIG_INIT;
        struct st_mca *mca = NULL;
        char err[700] = "", start[100];
        config.settings = &cases[i];
        config.n_settings = 1;
        ck_assert_int_eq(st_mca_create(&config, ST_MCA_ALL, &mca, err, sizeof(err)), want[i]);
        ck_assert_ptr_null(mca);
        snprintf(start, sizeof(start), "btl = \"%s\" (the program's own settings): ", cases[i].value);
        ck_assert_msg(!strncmp(err, start, strlen(start)), "%s", err);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("selection");
    TCase *t = tcase_create("selection");
    tcase_add_test(t, lists);
    tcase_add_test(t, admission);
    tcase_add_test(t, distances);
    tcase_add_test(t, nearest);
    tcase_add_test(t, unknown_components);
    suite_add_tcase(s, t);
    return run_suite(s);
}
