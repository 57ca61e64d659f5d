/* Thresholds: see thresholds.h. */
#include "thresholds.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "tune.h"
#include "tuned.h"
#include "wire.h"

#define TINY 64u /* payload that fits an ob1_msg */

static uint32_t ob1_smaller(uint64_t wanted, uint32_t most)
{
    return wanted < most ? (uint32_t)wanted : most;
}

void ob1_thresholds(const struct ob1 *pml, const struct st_btl_endpoint *ep, struct st_thresholds *out)
{
    const struct ob1_config *config = &pml->config;
    struct st_btl_facts facts = st_btl_facts_of(ep);

    st_thresholds_derive(ep->btl, &facts, out);
    if (config->eager_limit)
        out->eager_limit = ob1_smaller(config->eager_limit, ep->btl->max_send);
    if (config->stream_limit >= 0)
        out->stream_limit = (uint32_t)config->stream_limit;
    out->stream_limit = ob1_smaller(out->stream_limit, OB1_STREAM_MAX);
    if (config->coalesce >= 0)
        out->coalesce = (uint32_t)config->coalesce;
    if (config->rdma_min)
        out->rdma_min = config->rdma_min;
    if (config->split_min)
        out->split_min = out->alone_split_min = config->split_min;
    if (config->alone_min)
        out->alone_min = ob1_smaller(config->alone_min, UINT32_MAX);
    else if (config->eager_limit || config->stream_limit >= 0)
        out->alone_min = UINT32_MAX; /* the user has said what is not asked for */
}

/* Answers of receivers count where facts alone decide: neither the user's settings nor times of messages. */
static bool ob1_learns(const struct ob1 *pml)
{
    const struct ob1_config *c = &pml->config;

    return st_tuning(pml->head.context) == ST_TUNE_FACTS && !c->alone_min && !c->rdma_min && !c->split_min &&
           c->rndv == OB1_RNDV_AUTO;
}

static void ob1_peer_table(struct ob1 *pml, struct ob1_peer *peer, const struct st_thresholds *limits, uint32_t caps,
                           struct ob1_tune *tune)
{
    struct st_btl_facts facts = st_btl_facts_of(st_peer_path(peer->shared, 0));
    struct ob1_ways_of of = {.wanted = (enum ob1_rndv)pml->config.rndv,
                             .caps = caps & OB1_WAY_CAPS,
                             .bandwidth_mbs = facts.bandwidth_mbs,
                             .rdma_cost = facts.rdma_cost,
                             .learns = !tune && ob1_learns(pml),
                             .tuned = tune != NULL,
                             .limits = *limits};

    of.limits.eager_limit = peer->eager_limit;
    of.limits.stream_limit = peer->stream_limit;
    of.limits.alone_min = peer->alone_min;
    peer->table = ob1_table_of(pml, &of, tune);
    if (!peer->table)
        peer->alone_min = UINT32_MAX; /* no class is announced */
}

void ob1_peer_limits(struct ob1 *pml, struct ob1_peer *peer)
{
    struct st_btl_endpoint *way = st_peer_way(peer->shared, 0);
    uint32_t caps = st_peer_path(peer->shared, 0)->caps & ~(uint32_t)peer->lost_caps;
    struct ob1_tune *tune = ob1_tune_of(pml, way);
    struct st_thresholds t;

    ob1_thresholds(pml, way, &t); /* a lane copies what it sends */
    peer->eager_limit = peer->announce ? ob1_smaller(TINY, t.eager_limit) : t.eager_limit;
    peer->stream_limit = peer->announce ? 0 : t.stream_limit;
    peer->coalesce = (uint16_t)ob1_smaller(t.coalesce, ob1_smaller(way->btl->max_send / 4, UINT16_MAX));
    peer->zcopy_min = t.zcopy_min;
    if (peer->announce || !(caps & ST_BTL_GET))
        peer->alone_min = UINT32_MAX;
    else if (tune) /* each message from here on is classed */
        peer->alone_min = ob1_smaller(OB1_TUNE_LEAST, ob1_smaller(t.zcopy_min, t.eager_limit + 1));
    else
        peer->alone_min = t.alone_min;
    ob1_peer_table(pml, peer, &t, caps, tune);
}
