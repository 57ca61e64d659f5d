/* mca_base_node: who is local, for every division of a machine's ranks. */
#include "framework/rte/rte_nodes.h"

#include <check.h>
#include "support/run_suite.h"

enum { LOCAL = 7 };
static const int machine[LOCAL] = {1, 2, 4, 7, 8, 9, 12};
static int closed;

static const int *all_local(struct st_rte *rte, int *n)
{
    (void)rte;
    *n = LOCAL;
    return machine;
}
static bool one_local(struct st_rte *rte, int rank)
{
    (void)rte, (void)rank;
    return true;
}
static void count_close(struct st_rte *rte)
{
    (void)rte;
    closed++;
}
static const struct st_rte_ops ops = {.is_local = one_local, .local_ranks = all_local, .close = count_close};

/* The node of machine[i], as one number. */
static void divide(const char *text, const int node_of[LOCAL])
{
    for (int me = 0; me < LOCAL; me++) {
        struct st_rte rte = {.ops = &ops, .rank = machine[me], .size = 13};
        int n = 0, found = 0, before = closed;
        ck_assert_int_eq(st_rte_divide(&rte, text), STRATA_OK);
        const int *local = rte.ops->local_ranks(&rte, &n);
        for (int i = 0; i < LOCAL; i++) {
            bool same = node_of[i] == node_of[me];
            ck_assert_msg(rte.ops->is_local(&rte, machine[i]) == same, "%s: %d of %d", text, machine[i], machine[me]);
            if (same)
                ck_assert_int_eq(local[found++], machine[i]);
        }
        ck_assert_int_eq(found, n);
        ck_assert(!rte.ops->is_local(&rte, 0) && !rte.ops->is_local(&rte, 3) && !rte.ops->is_local(&rte, 13));
        rte.ops->close(&rte);
        ck_assert_int_eq(closed, before + 1);
        ck_assert_ptr_eq(rte.ops, &ops);
    }
}

START_TEST(divisions)
{
    divide("1", (const int[]){0, 1, 2, 3, 4, 5, 6});
    divide("2", (const int[]){0, 0, 1, 1, 2, 2, 3});
    divide("3,1", (const int[]){0, 0, 0, 1, 2, 3, 4});
    divide("1,4", (const int[]){0, 1, 1, 1, 1, 2, 2});
    divide("7", (const int[]){0, 0, 0, 0, 0, 0, 0});
    divide("100", (const int[]){0, 0, 0, 0, 0, 0, 0});
    divide("2,3,100", (const int[]){0, 0, 1, 1, 1, 2, 2});
}
END_TEST

START_TEST(nothing_or_nonsense)
{
    static const char *const wrong[] = {"0", "-1", "a", "2,", ",2", "2,,3", "2 3", "2,x", "7,0", "99999999999", "1.5"};
    struct st_rte rte = {.ops = &ops, .rank = 1, .size = 13};
    ck_assert_int_eq(st_rte_divide(&rte, ""), STRATA_OK);
    ck_assert_ptr_eq(rte.ops, &ops);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(st_rte_divide(&rte, wrong[i]) == STRATA_ERR_PARAM, "%s", wrong[i]);
        ck_assert_ptr_eq(rte.ops, &ops);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodes");
    TCase *tc = tcase_create("nodes");
    tcase_add_test(tc, divisions);
    tcase_add_test(tc, nothing_or_nonsense);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
