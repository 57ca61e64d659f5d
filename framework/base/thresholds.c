/* Thresholds of a path: see thresholds.h. */
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/thresholds.h>

/* A question and its answer take two latencies, in which so many bytes would have crossed; MB/s are bytes per us. */
static uint32_t thresholds_ask_cost(const struct st_btl_facts *facts)
{
    uint64_t bytes = (uint64_t)facts->latency_ns * facts->bandwidth_mbs / 500;

    if (facts->ask_cost)
        return facts->ask_cost;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

void st_thresholds_derive(const struct st_btl *btl, const struct st_btl_facts *facts, struct st_thresholds *out)
{
    uint32_t ask = thresholds_ask_cost(facts);

    *out = (struct st_thresholds){
        .eager_limit = btl->eager_limit,
        .stream_limit = ask > btl->eager_limit ? ask : btl->eager_limit,
        .zcopy_min = btl->hints && btl->hints->send_zcopy && facts->zcopy_cost ? facts->zcopy_cost : UINT32_MAX,
        .rdma_min = btl->caps & (ST_BTL_GET | ST_BTL_PUT) ? facts->rdma_cost : ST_BTL_RDMA_NEVER,
        .split_min = facts->split_cost,
        .alone_min = btl->caps & ST_BTL_GET && facts->alone_cost ? facts->alone_cost : UINT32_MAX,
        .alone_split_min = facts->alone_split_cost,
    };
}
