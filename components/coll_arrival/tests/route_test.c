/* Ways of the block of a bcast: of whom each member gets it, and how often it goes from one node to another. */
#include "op.h"

#include <check.h>
#include "support/run_suite.h"

enum { N = 7 };
static const int leader[N] = {0, 1, 0, 3, 1, 1, 0};

static struct nodes *with_leaders(void)
{
    struct nodes *nodes = arrival_nodes_make(N);
    ck_assert_ptr_nonnull(nodes);
    for (int m = 0; m < N; m++)
        nodes->cards[m].leader = leader[m];
    ck_assert(arrival_nodes_sort(nodes, N, 4));
    return nodes;
}

START_TEST(straight_from_the_root)
{
    for (int root = 0; root < N; root++)
        for (int m = 0; m < N; m++)
            ck_assert_int_eq(arrival_source(NULL, root, m), m == root ? -1 : root);
}
END_TEST

START_TEST(by_leaders)
{
    static const int from_2[N] = {2, 2, -1, 2, 1, 1, 2}, from_1[N] = {1, -1, 0, 1, 1, 1, 0};
    struct nodes *nodes = with_leaders();
    for (int m = 0; m < N; m++) {
        ck_assert_int_eq(arrival_source(nodes, 2, m), from_2[m]); /* the root is no leader */
        ck_assert_int_eq(arrival_source(nodes, 1, m), from_1[m]);
    }
    arrival_nodes_free(nodes);
}
END_TEST

/* From each root: all but it get the block, at most two steps from it, and each other node once from outside. */
START_TEST(each_node_is_entered_once)
{
    struct nodes *nodes = with_leaders();
    for (int root = 0; root < N; root++) {
        int entered[N] = {0};
        for (int m = 0; m < N; m++) {
            int from = arrival_source(nodes, root, m);
            ck_assert_int_eq(from < 0, m == root);
            if (from < 0)
                continue;
            ck_assert(from == root || arrival_source(nodes, root, from) == root);
            entered[leader[m]] += leader[from] != leader[m];
        }
        for (int m = 0; m < N; m++)
            ck_assert_int_eq(entered[m], leader[m] == m && leader[root] != m);
    }
    arrival_nodes_free(nodes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("route");
    TCase *tc = tcase_create("route");
    tcase_add_test(tc, straight_from_the_root);
    tcase_add_test(tc, by_leaders);
    tcase_add_test(tc, each_node_is_entered_once);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
