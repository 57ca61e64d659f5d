/* The map from rank to pointer, and what it costs for ranks never used. */
#include <check.h>

#include <strata/sdk/rank_table.h>
#include "support/run_suite.h"

START_TEST(stores_and_finds)
{
    struct st_rank_table t;
    int a, b;
    ck_assert_int_eq(st_rank_table_init(&t, 2000), STRATA_OK);
    ck_assert_ptr_null(st_rank_table_get(&t, 1999));
    ck_assert_int_eq(st_rank_table_next(&t, 0), -1);
    ck_assert_int_eq(st_rank_table_set(&t, 5, &a), STRATA_OK);
    ck_assert_int_eq(st_rank_table_set(&t, 1999, &b), STRATA_OK);
    ck_assert_ptr_eq(st_rank_table_get(&t, 5), &a);
    ck_assert_ptr_eq(st_rank_table_get(&t, 1999), &b);
    ck_assert_ptr_null(st_rank_table_get(&t, 6));
    ck_assert_int_eq(st_rank_table_next(&t, 0), 5);
    ck_assert_int_eq(st_rank_table_next(&t, 6), 1999);
    ck_assert_int_eq(st_rank_table_next(&t, 2047), -1);
    ck_assert_int_eq(st_rank_table_next(&t, 1u << 30), -1);
    ck_assert_int_eq(st_rank_table_set(&t, 5, NULL), STRATA_OK);
    ck_assert_int_eq(st_rank_table_set(&t, 700, NULL), STRATA_OK);
    ck_assert_ptr_null(st_rank_table_get(&t, 5));
    ck_assert_int_eq(st_rank_table_set(&t, 1u << 20, &a), STRATA_ERR_RANK);
    ck_assert_uint_eq(t.n_leaves, 2);
    st_rank_table_destroy(&t);
}
END_TEST

START_TEST(a_million_ranks_cost_a_directory)
{
    struct st_rank_table t;
    ck_assert_int_eq(st_rank_table_init(&t, 1000000), STRATA_OK);
    ck_assert_uint_le(st_rank_table_bytes(&t), 16 * 1024);
    ck_assert_int_eq(st_rank_table_set(&t, 999999, &t), STRATA_OK);
    ck_assert_uint_le(st_rank_table_bytes(&t), 24 * 1024);
    ck_assert_int_eq(st_rank_table_next(&t, 0), 999999);
    st_rank_table_destroy(&t);
    /* A rank space far larger than the number of processes starts with nothing. */
    ck_assert_int_eq(st_rank_table_init(&t, INT32_MAX), STRATA_OK);
    ck_assert_uint_eq(st_rank_table_bytes(&t), 0);
    ck_assert_ptr_null(st_rank_table_get(&t, INT32_MAX - 1));
    ck_assert_int_eq(st_rank_table_set(&t, 3, &t), STRATA_OK);
    ck_assert_int_eq(st_rank_table_set(&t, (1 << 20) + 1, &t), STRATA_OK);
    ck_assert_ptr_eq(st_rank_table_get(&t, (1 << 20) + 1), &t);
    ck_assert_int_eq(st_rank_table_next(&t, 4), (1 << 20) + 1);
    st_rank_table_destroy(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rank_table");
    TCase *t = tcase_create("all");
    tcase_add_test(t, stores_and_finds);
    tcase_add_test(t, a_million_ranks_cost_a_directory);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
