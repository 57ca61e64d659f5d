/* The table of ways says what the chooser says, for every length, or that it does not know; peers that are alike share
 * one. */
#include <check.h>
#include <stdlib.h>
#include <strata/sdk/pml.h>
#include "ob1.h"
#include "support/random.h"
#include "support/run_suite.h"
#include "table.h"

START_TEST(ranges_follow_one_another)
{
    uint32_t before = 0;

    for (uint64_t length = 0; length <= (5u << 20); length++) {
        uint32_t size = ob1_table_size(length);
        if (size != before && size != before + 1) /* an assertion writes to a file each time */
            ck_abort_msg("%u follows %u", size, before);
        before = size;
    }
    ck_assert_uint_eq(before, OB1_TABLE_SIZES - 1);
    ck_assert_uint_eq(ob1_table_size(UINT64_MAX), OB1_TABLE_SIZES - 1);
    ck_assert_uint_eq(ob1_table_size(1024), 0);
    ck_assert_uint_eq(ob1_table_size(1025), 1);
    ck_assert_uint_eq(ob1_table_size(65536) + 1, ob1_table_size(65537)); /* a limit that is a power of two cuts none */
}
END_TEST

static uint32_t some_length(struct rnd *r)
{
    uint32_t power = 1u << rnd_below(r, 24);

    return rnd_below(r, 2) ? power : power + rnd_below(r, power);
}

static uint32_t some_limit(struct rnd *r)
{
    return rnd_below(r, 8) ? some_length(r) : UINT32_MAX;
}

static struct ob1_ways_of some_path(struct rnd *r)
{
    static const uint32_t caps[] = {ST_BTL_GET, ST_BTL_PUT, ST_BTL_NEEDS_REG, ST_BTL_NEEDS_REG | ST_BTL_REG_KEPT,
                                    ST_BTL_NEEDS_REG | ST_BTL_REG_CHEAP};
    struct ob1_ways_of of = {.wanted = rnd_below(r, 2) ? OB1_RNDV_AUTO : (enum ob1_rndv)rnd_below(r, 5),
                             .bandwidth_mbs = 1000,
                             .learns = rnd_below(r, 2),
                             .tuned = rnd_below(r, 4) == 0};

    for (int i = 0; i < 5; i++)
        of.caps |= rnd_below(r, 2) ? caps[i] : 0;
    of.limits.eager_limit = some_length(r);
    of.limits.stream_limit = rnd_below(r, 8) ? some_length(r) : 0;
    of.limits.zcopy_min = UINT32_MAX;
    of.limits.rdma_min = rnd_below(r, 8) ? some_length(r) : ST_BTL_RDMA_NEVER;
    of.limits.split_min = rnd_below(r, 3) ? some_length(r) : 0;
    of.limits.alone_min = some_limit(r);
    of.limits.alone_split_min = rnd_below(r, 3) ? some_length(r) : 0;
    return of;
}

static void check_length(const struct ob1_table *t, const struct ob1_ways_of *of, uint64_t length)
{
    uint32_t size = ob1_table_size(length);

    for (int traffic = 0; traffic < OB1_CLASSES; traffic++)
        if (t->start[traffic][size] != OB1_WAY_CUT &&
            t->start[traffic][size] != ob1_way_start(of, (enum ob1_class)traffic, length))
            ck_abort_msg("class %d, %llu bytes", traffic, (unsigned long long)length);
    for (int at_once = 0; at_once < 2; at_once++)
        if (t->answer[at_once][size] != OB1_WAY_CUT && t->answer[at_once][size] != ob1_way_answer(of, at_once, length))
            ck_abort_msg("answer %d, %llu bytes", at_once, (unsigned long long)length);
}

static uint32_t cuts(const uint8_t way[OB1_TABLE_SIZES])
{
    uint32_t n = 0;

    for (uint32_t size = 0; size < OB1_TABLE_SIZES; size++)
        n += way[size] == OB1_WAY_CUT;
    return n;
}

START_TEST(the_table_is_the_chooser)
{
    static struct ob1_table t;
    struct rnd r = {(uint64_t)_i + 1};

    for (int path = 0; path < 300; path++) {
        struct ob1_ways_of of = some_path(&r);
        struct ob1_way_edge edge[OB1_WAYS_MOST];
        ob1_table_fill(&t, &of);
        ob1_way_edges(&of, edge);
        for (int i = 0; i < OB1_WAYS_MOST; i++)
            for (uint64_t near = edge[i].from < 2 ? 0 : edge[i].from - 2; near < edge[i].from + 3; near++)
                check_length(&t, &of, near);
        for (int i = 0; i < 300; i++)
            check_length(&t, &of, some_length(&r));
        for (int traffic = 0; traffic < OB1_CLASSES; traffic++) /* one load, but where a threshold lies */
            ck_assert_uint_le(cuts(t.start[traffic]), OB1_WAYS_MOST);
        for (int at_once = 0; at_once < 2; at_once++)
            ck_assert_uint_le(cuts(t.answer[at_once]), OB1_WAYS_MOST);
    }
}
END_TEST

static struct ob1_ways_of typical(void)
{
    return (struct ob1_ways_of){.wanted = OB1_RNDV_AUTO,
                                .caps = ST_BTL_GET | ST_BTL_PUT,
                                .bandwidth_mbs = 10000,
                                .learns = true,
                                .limits = {.eager_limit = 4096,
                                           .stream_limit = 65536,
                                           .zcopy_min = UINT32_MAX,
                                           .rdma_min = 131072,
                                           .alone_min = 10000}};
}

/* To a receiver that is late what would be a stream is announced, where a get pays at all. */
START_TEST(late_receivers_are_asked)
{
    struct ob1_ways_of of = typical();

    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 4096), OB1_P_EAGER);
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 9999), OB1_P_STREAM);
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 10000), OB1_P_RNDV_EXPOSED | OB1_WAY_ASKED);
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 65536), OB1_P_RNDV_EXPOSED | OB1_WAY_ASKED);
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 65537), OB1_P_RNDV_EXPOSED); /* as ever: not at once */
    ck_assert_int_eq(ob1_way_answer(&of, true, 10000), OB1_P_GET);
    of.limits.alone_min = 1000;
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 4096), OB1_P_EAGER); /* one fragment stays one */
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 4097), OB1_P_RNDV_EXPOSED | OB1_WAY_ASKED);
    of.learns = false;
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 5000), OB1_P_STREAM);
    of = typical();
    of.caps = ST_BTL_PUT;
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 20000), OB1_P_STREAM);
    of = typical();
    of.limits.alone_min = UINT32_MAX;
    ck_assert_uint_eq(ob1_way_start(&of, OB1_LATE, 20000), OB1_P_STREAM);
}
END_TEST

START_TEST(peers_that_are_alike_share_a_table)
{
    static struct ob1 pml;
    struct ob1_ways_of of = typical();
    const struct ob1_table *near = ob1_table_of(&pml, &of, NULL), *far;

    ck_assert_ptr_nonnull(near);
    ck_assert_ptr_eq(ob1_table_of(&pml, &of, NULL), near);
    of.limits.alone_min = 20000;
    far = ob1_table_of(&pml, &of, NULL);
    ck_assert_ptr_ne(far, near);
    ck_assert_ptr_eq(ob1_table_of(&pml, &of, NULL), far);
    ck_assert_uint_eq(pml.n_tables, 2);
    for (of.limits.alone_min = 1; pml.n_tables < OB1_TABLES_MOST; of.limits.alone_min++)
        ck_assert_ptr_nonnull(ob1_table_of(&pml, &of, NULL));
    ck_assert_ptr_null(ob1_table_of(&pml, &of, NULL));
    ob1_tables_destroy(&pml);
    ck_assert_ptr_null(pml.tables);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_table");
    TCase *tc = tcase_create("table");

    tcase_add_test(tc, ranges_follow_one_another);
    tcase_add_loop_test(tc, the_table_is_the_chooser, 0, 4);
    tcase_add_test(tc, late_receivers_are_asked);
    tcase_add_test(tc, peers_that_are_alike_share_a_table);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
