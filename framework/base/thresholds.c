/* Thresholds of a path: see thresholds.h. */
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/thresholds.h>

#define FRAGMENT_COST 1024u /* where the transport says nothing */

/* A question and its answer take two latencies, in which so many bytes would have crossed; MB/s are bytes per us. */
static uint32_t thresholds_ask_cost(const struct st_btl_facts *facts)
{
    uint64_t bytes = (uint64_t)facts->latency_ns * facts->bandwidth_mbs / 500;

    if (facts->ask_cost)
        return facts->ask_cost;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* In a burst a message that costs less to copy than a fragment of its own goes together with others, if four have room:
 * the copies of fewer may cost more than the fragments. */
static uint32_t thresholds_coalesce(const struct st_btl *btl, const struct st_btl_facts *facts)
{
    uint32_t cost = facts->fragment_cost ? facts->fragment_cost : FRAGMENT_COST, most = btl->eager_limit / 4;

    return cost < most ? cost : most;
}

#define COPIED      65536u /* bytes of the longest copy and write of st_btl_times */
#define ASK_LEAST   (16u << 10)
#define ASK_MOST    (128u << 10)
#define ALONE_LEAST (8u << 10)
#define SPLIT_LEAST (64u << 10)
#define RDMA_MOST   (4u << 20)

static uint64_t thresholds_between(uint64_t n, uint64_t least, uint64_t most)
{
    return n < least ? least : n > most ? most : n;
}

void st_thresholds_costs(const struct st_btl_times *t, bool keeps, bool software, struct st_btl_facts *facts)
{
    uint64_t copy = t->copies_64k ? t->copies_64k : 1;
    uint64_t each = t->writes_64k > t->writes_16k ? t->writes_64k - t->writes_16k : 1; /* of 48 KiB */
    uint64_t ask = 2 * t->sends * COPIED / copy;
    /* Of a message alone both copies are in its way. */
    uint64_t alone = ask / 2, rdma = ask, split = 0;

    /* Registering takes some time, and then some for each page; both ends do it, half of the 128 KiB measured. */
    if (!keeps)
        alone = rdma = (2 * t->sends + t->registers) * COPIED / copy;
    /* The half that the other end moves saves its time, and costs a question and its answer. */
    if (software && t->posts_64k * 2 > t->writes_64k)
        split = thresholds_between(2 * (2 * t->sends * (uint64_t)(48u << 10) / each), SPLIT_LEAST, RDMA_MOST);
    facts->ask_cost = (uint32_t)thresholds_between(ask, ASK_LEAST, ASK_MOST);
    facts->alone_cost = (uint32_t)thresholds_between(alone, ALONE_LEAST, RDMA_MOST);
    facts->rdma_cost = thresholds_between(rdma, ASK_LEAST, RDMA_MOST);
    facts->split_cost = facts->alone_split_cost = split;
}

void st_thresholds_derive(const struct st_btl *btl, const struct st_btl_facts *facts, struct st_thresholds *out)
{
    uint32_t ask = thresholds_ask_cost(facts);

    *out = (struct st_thresholds){
        .eager_limit = btl->eager_limit,
        .stream_limit = ask > btl->eager_limit ? ask : btl->eager_limit,
        .coalesce = thresholds_coalesce(btl, facts),
        .zcopy_min = btl->hints && btl->hints->send_zcopy && facts->zcopy_cost ? facts->zcopy_cost : UINT32_MAX,
        .rdma_min = btl->caps & (ST_BTL_GET | ST_BTL_PUT) ? facts->rdma_cost : ST_BTL_RDMA_NEVER,
        .split_min = facts->split_cost,
        .alone_min = btl->caps & ST_BTL_GET && facts->alone_cost ? facts->alone_cost : UINT32_MAX,
        .alone_split_min = facts->alone_split_cost,
    };
}
