/* The choice of algorithms: defaults are possible and cover every operation, a table replaces them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "choose.h"
#include "support/run_suite.h"

static const struct basic_table empty;

START_TEST(defaults_are_possible)
{
    for (int kind = 0; kind < STRATA_COLL_KINDS; kind++)
        for (int ranks = 1; ranks < 40; ranks++)
            for (int commutative = 0; commutative < 2; commutative++)
                for (size_t bytes = 0; bytes < (size_t)1 << 24; bytes = 2 * bytes + 1) {
                    enum basic_algorithm a = basic_choose(&empty, (strata_coll_kind_t)kind, bytes, ranks, commutative);
                    ck_assert(basic_can((strata_coll_kind_t)kind, a, commutative));
                }
}
END_TEST

START_TEST(defaults_depend_on_size)
{
    ck_assert_int_eq(basic_choose(&empty, STRATA_ALLREDUCE, 8, 8, true), BASIC_DOUBLING);
    ck_assert_int_eq(basic_choose(&empty, STRATA_ALLREDUCE, 1 << 20, 8, true), BASIC_RING);
    ck_assert_int_eq(basic_choose(&empty, STRATA_ALLREDUCE, 1 << 20, 8, false), BASIC_DOUBLING);
    ck_assert_int_eq(basic_choose(&empty, STRATA_ALLTOALL, 8, 8, true), BASIC_BRUCK);
    ck_assert_int_eq(basic_choose(&empty, STRATA_ALLTOALL, 1 << 20, 8, true), BASIC_PAIRWISE);
}
END_TEST

static int read_text(const char *text, struct basic_table *t, char *why, size_t size)
{
    char path[] = "choose_test.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *f = fdopen(fd, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    int rc = basic_table_read(path, t, why, size);
    unlink(path);
    return rc;
}

START_TEST(table_replaces)
{
    struct basic_table t;
    char why[200] = "";
    ck_assert_int_eq(read_text("# mine\nallreduce 8 100 ring\n\nbcast 4 1000 ring # chain\n", &t, why, sizeof(why)), 0);
    ck_assert_uint_eq(t.n, 2);
    ck_assert_int_eq(basic_choose(&t, STRATA_ALLREDUCE, 100, 8, true), BASIC_RING);
    ck_assert_int_eq(basic_choose(&t, STRATA_ALLREDUCE, 101, 8, true), BASIC_DOUBLING);
    ck_assert_int_eq(basic_choose(&t, STRATA_ALLREDUCE, 100, 9, true), BASIC_DOUBLING);
    ck_assert_int_eq(basic_choose(&t, STRATA_ALLREDUCE, 100, 8, false), BASIC_DOUBLING);
    ck_assert_int_eq(basic_choose(&t, STRATA_BCAST, 8, 4, true), BASIC_RING);
    free(t.rules);
}
END_TEST

START_TEST(between_groups)
{
    struct basic_table t;
    char why[200] = "";
    for (int kind = 0; kind < STRATA_SCAN; kind++)
        for (int ranks = 2; ranks < 40; ranks++)
            ck_assert(basic_can_inter((strata_coll_kind_t)kind,
                                      basic_choose_inter(&empty, (strata_coll_kind_t)kind, 8, ranks)));
    ck_assert_int_eq(basic_choose_inter(&empty, STRATA_ALLREDUCE, 8, 8), BASIC_LINEAR);
    ck_assert_int_eq(basic_choose_inter(&empty, STRATA_ALLREDUCE, 8, 9), BASIC_LEADER);
    ck_assert_int_eq(read_text("inter_allreduce 8 100 leader\nallreduce 9 100 ring\n", &t, why, sizeof(why)), 0);
    ck_assert_int_eq(basic_choose_inter(&t, STRATA_ALLREDUCE, 100, 8), BASIC_LEADER);
    ck_assert_int_eq(basic_choose_inter(&t, STRATA_ALLREDUCE, 101, 8), BASIC_LINEAR);
    ck_assert_int_eq(basic_choose_inter(&t, STRATA_BARRIER, 0, 8), BASIC_LINEAR);
    ck_assert_int_eq(basic_choose(&t, STRATA_ALLREDUCE, 100, 8, true), BASIC_RING);
    free(t.rules);
}
END_TEST

START_TEST(bad_tables_are_refused)
{
    static const char *const bad[] = {"bcast 4 1000\n",
                                      "bcast 4 1000 pairwise\n",
                                      "cast 4 1 tree\n",
                                      "bcast 0 1 tree\n",
                                      "bcast 4 1 tree tree\n",
                                      "allreduce 4 1 leader\n",
                                      "inter_allreduce 4 1 ring\n",
                                      "inter_scan 4 1 linear\n"};
    struct basic_table t;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char why[200] = "";
        ck_assert_int_eq(read_text(bad[i], &t, why, sizeof(why)), STRATA_ERR_PARAM);
        ck_assert_ptr_nonnull(strstr(why, "line 1"));
    }
    char why[200] = "";
    ck_assert_int_eq(basic_table_read("/nonexistent/table", &t, why, sizeof(why)), STRATA_ERR_PARAM);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("choose");
    TCase *tc = tcase_create("choose");
    tcase_add_test(tc, defaults_are_possible);
    tcase_add_test(tc, defaults_depend_on_size);
    tcase_add_test(tc, table_replaces);
    tcase_add_test(tc, between_groups);
    tcase_add_test(tc, bad_tables_are_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
