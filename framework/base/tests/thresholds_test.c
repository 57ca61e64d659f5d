/* Costs of a path that follow from the times of its operations. */
#include <check.h>
#include <strata/sdk/thresholds.h>
#include "support/run_suite.h"

/* A send of 500 ns and copies of 16 bytes a ns: asking costs as much as copying 16 KB. */
static const struct st_btl_times quick = {500, 2000, 6000, 5500, 4096, 3000};

static struct st_btl_facts costs(const struct st_btl_times *t, bool keeps, bool software)
{
    struct st_btl_facts facts = {.latency_ns = 7, .bandwidth_mbs = 8, .zcopy_cost = 9};

    st_thresholds_costs(t, keeps, software, &facts);
    ck_assert(facts.latency_ns == 7 && facts.bandwidth_mbs == 8 && facts.zcopy_cost == 9);
    ck_assert_uint_eq(facts.split_cost, facts.alone_split_cost);
    return facts;
}

START_TEST(costs_follow_times)
{
    struct st_btl_facts kept = costs(&quick, true, true), each = costs(&quick, false, true);
    struct st_btl_times t = quick;

    ck_assert_uint_eq(kept.ask_cost, 16384);  /* 16,000 bytes: a buffer holds more */
    ck_assert_uint_eq(kept.alone_cost, 8192); /* 8,000 */
    ck_assert_uint_eq(kept.rdma_cost, 16384);
    ck_assert_uint_eq(each.rdma_cost, 64000); /* 1 us to ask, 3 to register */
    ck_assert_uint_eq(each.alone_cost, each.rdma_cost);
    t.sends = 2000; /* dear messages */
    ck_assert_uint_eq(costs(&t, true, true).ask_cost, 64000);
    ck_assert_uint_eq(costs(&t, true, true).alone_cost, 32000);
    t.copies_64k = 40960; /* and dear copies */
    ck_assert_uint_eq(costs(&t, true, true).ask_cost, 16384);
}
END_TEST

START_TEST(hardware_does_not_split)
{
    struct st_btl_times t = quick;

    ck_assert_uint_eq(costs(&t, true, false).split_cost, 0);
    ck_assert_uint_ge(costs(&t, true, true).split_cost, 65536);
    t.posts_64k = 300; /* somebody else moves the bytes */
    ck_assert_uint_eq(costs(&t, true, true).split_cost, 0);
}
END_TEST

/* Whatever a device says, thresholds stay within their bounds. */
START_TEST(costs_have_bounds)
{
    const struct st_btl_times nothing = {0}, slow = {1u << 30, 1u << 30, 1u << 30, 1u << 30, 1, 1u << 30};

    for (int i = 0; i < 4; i++) {
        struct st_btl_facts c = costs(i & 1 ? &nothing : &slow, i & 2, true);
        ck_assert_uint_ge(c.ask_cost, 16384);
        ck_assert_uint_le(c.ask_cost, 131072);
        ck_assert_uint_ge(c.alone_cost, 8192);
        ck_assert_uint_le(c.rdma_cost, 4 << 20);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("thresholds");
    TCase *t = tcase_create("all");

    tcase_add_test(t, costs_follow_times);
    tcase_add_test(t, hardware_does_not_split);
    tcase_add_test(t, costs_have_bounds);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
