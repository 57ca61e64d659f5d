/* Thresholds are each path's own: two endpoints of one module that differ in distance get different ones, and messages
 * go by them. */
#include <check.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/pml.h>
#include "support/pattern.h"
#include "support/world.h"
#include "support/run_suite.h"
#include "choose.h"
#include "ob1.h"
#include "thresholds.h"

enum { FAR = 7 };

static void facts_of(const struct st_btl_endpoint *ep, struct st_btl_facts *facts)
{
    if (ep->rank == FAR)
        *facts = (struct st_btl_facts){
            .latency_ns = 9000, .bandwidth_mbs = 1000, .zcopy_cost = 700, .rdma_cost = 50000, .split_cost = 90000};
}

static int zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                 uint32_t len, struct st_btl_op *op)
{
    (void)ep, (void)am, (void)hdr, (void)hdr_len, (void)data, (void)len, (void)op;
    return STRATA_ERR_AGAIN;
}

static const struct st_btl_ops ops = {.facts = facts_of};
static const struct st_btl_hints with_zcopy = {.send_zcopy = zcopy}, without = {0};

static struct st_btl module(void)
{
    return (struct st_btl){.ops = &ops,
                           .hints = &with_zcopy,
                           .caps = ST_BTL_GET | ST_BTL_PUT,
                           .eager_limit = 1000,
                           .max_send = 4000,
                           .facts = {.latency_ns = 1000,
                                     .bandwidth_mbs = 1000,
                                     .ask_cost = 3000,
                                     .fragment_cost = 200,
                                     .zcopy_cost = 500,
                                     .rdma_cost = 8000}};
}

static struct st_thresholds of(const struct ob1_config *config, struct st_btl *btl, int rank)
{
    static struct ob1 pml;
    struct st_btl_endpoint ep = {.btl = btl, .rank = rank, .caps = btl->caps};
    struct st_thresholds t;

    pml.config = *config;
    ob1_thresholds(&pml, &ep, &t);
    return t;
}

static const struct ob1_config no_wishes = {.stream_limit = -1, .coalesce = -1};

START_TEST(two_endpoints_differ)
{
    struct st_btl btl = module();
    struct st_thresholds near = of(&no_wishes, &btl, 1), far = of(&no_wishes, &btl, FAR);

    ck_assert_uint_eq(near.eager_limit, 1000);
    ck_assert_uint_eq(far.eager_limit, 1000);
    ck_assert_uint_eq(near.stream_limit, 3000);
    ck_assert_uint_eq(far.stream_limit, 18000); /* two latencies of 9 us at 1000 bytes a us */
    ck_assert_uint_eq(near.coalesce, 200);      /* its cost, which is less than a quarter of eager_limit */
    ck_assert_uint_eq(far.coalesce, 250);       /* a quarter of eager_limit */
    ck_assert_uint_eq(near.zcopy_min, 500);
    ck_assert_uint_eq(far.zcopy_min, 700);
    ck_assert_uint_eq(near.rdma_min, 8000);
    ck_assert_uint_eq(far.rdma_min, 50000);
    ck_assert_uint_eq(near.split_min, 0);
    ck_assert_uint_eq(far.split_min, 90000);
}
END_TEST

START_TEST(what_is_not_there_never_pays)
{
    struct st_btl btl = module();

    btl.facts.ask_cost = 1;
    ck_assert_uint_eq(of(&no_wishes, &btl, 1).stream_limit, 1000); /* not below eager_limit */
    btl.facts.zcopy_cost = 0;
    ck_assert_uint_eq(of(&no_wishes, &btl, 1).zcopy_min, UINT32_MAX);
    btl = module();
    btl.hints = &without;
    btl.caps = 0;
    ck_assert_uint_eq(of(&no_wishes, &btl, 1).zcopy_min, UINT32_MAX);
    ck_assert_uint_eq(of(&no_wishes, &btl, 1).rdma_min, ST_BTL_RDMA_NEVER);
    btl.facts = (struct st_btl_facts){.latency_ns = UINT32_MAX, .bandwidth_mbs = UINT32_MAX};
    ck_assert_uint_eq(of(&no_wishes, &btl, 1).stream_limit, OB1_STREAM_MAX);
}
END_TEST

START_TEST(the_users_settings_win)
{
    struct st_btl btl = module();
    struct ob1_config wishes = {.eager_limit = 2000, .stream_limit = 0, .coalesce = 300, .rdma_min = 1, .split_min = 2};
    struct st_thresholds t = of(&wishes, &btl, FAR);

    ck_assert_uint_eq(t.eager_limit, 2000);
    ck_assert_uint_eq(t.stream_limit, 0);
    ck_assert_uint_eq(t.coalesce, 300);
    ck_assert_uint_eq(t.rdma_min, 1);
    ck_assert_uint_eq(t.split_min, 2);
    wishes.eager_limit = 5000;
    ck_assert_uint_eq(of(&wishes, &btl, FAR).eager_limit, 4000); /* what one message can carry */
}
END_TEST

/* Over btl_shuffle, where odd ranks are far: 6000 bytes stream to rank 1 and are announced to rank 2, 12 kB to both. */
static void three_ranks(struct tw_rank *r)
{
    const uint64_t *by = ((struct ob1 *)r->comm->pml)->by_protocol;
    static char data[3][12000];
    char in[12000];
    size_t lengths[] = {6000, 12000};

    for (int k = 0; k < 2; k++) {
        for (int to = 1; to < 3; to++) {
            if (r->rank == 0) {
                uint64_t streams = by[OB1_P_STREAM];
                pattern_fill(data[to], lengths[k], (uint64_t)to);
                CHECK_OK(strata_send(r->comm, data[to], lengths[k], to, k));
                CHECK_EQ(by[OB1_P_STREAM] - streams, to == 1 && k == 0);
            } else if (r->rank == to) {
                CHECK_OK(strata_recv(r->comm, in, sizeof(in), 0, k, NULL));
                CHECK_EQ(pattern_check(in, lengths[k], (uint64_t)to), -1);
            }
        }
    }
    tw_quiesce(r);
}

START_TEST(messages_go_by_them)
{
    tw_run(&(struct tw_options){.n = 3,
                                .settings = "btl=shuffle btl_shuffle_again_percent=0 btl_shuffle_crowded_percent=0 "
                                            "btl_shuffle_stream_limit=4k"},
           three_ranks, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pml_ob1 thresholds");
    TCase *tc = tcase_create("thresholds");

    tcase_add_test(tc, two_endpoints_differ);
    tcase_add_test(tc, what_is_not_there_never_pays);
    tcase_add_test(tc, the_users_settings_win);
    tcase_add_test(tc, messages_go_by_them);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
