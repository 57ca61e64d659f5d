/* Nodes of different sizes: order of members, cards that contradict each other, layout and limit of areas. */
#include "nodes.h"

#include <check.h>
#include <unistd.h>
#include "support/run_suite.h"

enum { N = 6, ME = 4 };

static struct nodes *with_leaders(const int *leader)
{
    struct nodes *nodes = arrival_nodes_make(N);
    ck_assert_ptr_nonnull(nodes);
    for (int m = 0; m < N; m++)
        nodes->cards[m].leader = leader[m];
    return nodes;
}

START_TEST(members_by_node)
{
    static const int leader[N] = {0, 1, 0, 3, 1, 1}, order[N] = {0, 2, 1, 4, 5, 3};
    struct nodes *nodes = with_leaders(leader);
    ck_assert(arrival_nodes_sort(nodes, N, ME));
    ck_assert_int_eq(nodes->n_nodes, 3);
    ck_assert_int_eq(nodes->leader, 1);
    ck_assert_int_eq(nodes->n_local, 3);
    ck_assert_int_eq(nodes->least, 1);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(nodes->order[i], order[i]);
        ck_assert_int_eq(nodes->place[order[i]], i);
    }
    ck_assert_int_eq(nodes->count[0], 2);
    ck_assert_int_eq(nodes->count[1], 3);
    ck_assert_int_eq(nodes->count[3], 1);
    ck_assert_int_eq(node_local(nodes, 4), 1);
    ck_assert_int_eq(node_local(nodes, 5), 2);
    arrival_nodes_free(nodes);
}
END_TEST

START_TEST(contradictions)
{
    static const int leader[][N] = {
        {0, 0, 1, 3, 3, 3},  /* a leader that has another */
        {0, 0, 4, 3, 4, 4},  /* a leader behind its member */
        {-1, 1, 1, 3, 3, 3}, /* none */
        {0, 0, 0, 0, 0, N},
    };
    for (size_t i = 0; i < sizeof(leader) / sizeof(leader[0]); i++) {
        struct nodes *nodes = with_leaders(leader[i]);
        ck_assert(!arrival_nodes_sort(nodes, N, ME));
        ck_assert_int_eq(nodes->n_nodes, 0);
        arrival_nodes_free(nodes);
    }
}
END_TEST

/* Parts of an area follow each other without overlap and are aligned for what is in them. */
START_TEST(parts_are_apart)
{
    static const size_t limits[] = {8, 64, 4096, 100000};
    for (int local = 1; local <= N; local++)
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
            struct node_layout l;
            size_t members = N, n_local = (size_t)local;
            arrival_node_layout(N, local, limits[i], &l);
            ck_assert_uint_eq(l.lines, 0);
            ck_assert_uint_ge(l.flags, n_local * sizeof(struct node_line));
            ck_assert_uint_ge(l.waited, l.flags + members * sizeof(uint64_t));
            ck_assert_uint_ge(l.lengths, l.waited + 2 * members);
            ck_assert_uint_ge(l.gather, l.lengths + 4 * n_local * members * sizeof(uint32_t));
            ck_assert_uint_ge(l.half, n_local * members * limits[i]);
            ck_assert_uint_eq(l.scatter, l.gather + 2 * l.half);
            ck_assert_uint_ge(l.bytes, l.scatter + 2 * l.half);
            ck_assert_uint_eq(l.flags % 64, 0);
            ck_assert_uint_eq(l.lengths % 64, 0);
            ck_assert_uint_eq(l.half % 64, 0);
        }
}
END_TEST

START_TEST(limit_fits_the_memory)
{
    struct node_layout l;
    ck_assert_uint_eq(arrival_node_limit(N, 3, 4096, SIZE_MAX), 4096);
    ck_assert_uint_eq(arrival_node_limit(N, 3, 4099, SIZE_MAX), 4096);
    ck_assert_uint_eq(arrival_node_limit(N, 3, 4096, 0), 0);
    ck_assert_uint_eq(arrival_node_limit(N, 3, 7, SIZE_MAX), 0);
    arrival_node_layout(N, 3, 4096, &l);
    ck_assert_uint_eq(arrival_node_limit(N, 3, 4096, l.bytes), 4096);
    ck_assert_uint_eq(arrival_node_limit(N, 3, 4096, l.bytes - 1), 2048);
    /* Never more than one mapping may have. */
    size_t limit = arrival_node_limit(1000, 1000, 1 << 24, SIZE_MAX);
    arrival_node_layout(1000, 1000, limit, &l);
    ck_assert_uint_gt(limit, 0);
    ck_assert_uint_le(l.bytes, ST_SHARED_MAP_MOST);
}
END_TEST

/* A member that maps the leader's area finds what the leader has put there, in its generation, and it stays. */
START_TEST(mapped_and_left)
{
    static const int leader[N] = {0, 0, 0, 3, 3, 3};
    struct nodes *owner = with_leaders(leader), *other = with_leaders(leader);
    struct node_card card = {.limit = 64};
    ck_assert(arrival_nodes_sort(owner, N, 3) && arrival_nodes_sort(other, N, ME));
    arrival_node_layout(N, 3, 64, &owner->layout);
    other->layout = owner->layout;
    ck_assert_int_eq(arrival_node_area(owner, owner->layout.bytes, &card), STRATA_OK);
    ck_assert_int_eq(st_shared_map((uint32_t)getpid(), &card.name, &other->mapping), STRATA_OK);
    other->area = other->mapping.memory;
    node_gather(owner, 1)[5] = 7;
    node_scatter(owner, 2)[6] = 8;
    node_lengths(owner, N, 1, true, 2)[3] = 9;
    atomic_store(&node_line(owner, 1)->posted, 5);
    atomic_store(node_flag(owner, 3), 6);
    arrival_nodes_free(owner);
    ck_assert_int_eq(node_gather(other, 3)[5], 7);
    ck_assert_int_eq(node_gather(other, 2)[5], 0);
    ck_assert_int_eq(node_scatter(other, 0)[6], 8);
    ck_assert_uint_eq(node_lengths(other, N, 1, true, 2)[3], 9);
    ck_assert_uint_eq(node_lengths(other, N, 1, false, 2)[3], 0);
    ck_assert_uint_eq(atomic_load(&node_line(other, 1)->posted), 5);
    ck_assert_uint_eq(atomic_load(node_flag(other, 3)), 6);
    arrival_nodes_free(other);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nodes");
    TCase *tc = tcase_create("nodes");
    tcase_add_test(tc, members_by_node);
    tcase_add_test(tc, contradictions);
    tcase_add_test(tc, parts_are_apart);
    tcase_add_test(tc, limit_fits_the_memory);
    tcase_add_test(tc, mapped_and_left);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
