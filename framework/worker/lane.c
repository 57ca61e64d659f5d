/* Lanes: made and destroyed. See lane.h. */
#include <stdlib.h>
#include <strata/sdk/btl_hints.h>
#include "framework/worker/lane.h"

static const struct st_btl_ops lane_ops = {.send = lane_send, .send_payload = lane_send_payload};
static const struct st_btl_hints lane_hints = {.send_bulk = lane_send_bulk}; /* no RDMA: that goes by the paths */

static uint32_t lane_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What goes over one path must be able to go over any. */
static void lane_attributes(struct st_lane *lane, const struct st_bml_peer *bml)
{
    struct st_btl *own = &lane->btl;

    own->ops = &lane_ops;
    own->hints = &lane_hints;
    own->context = lane->w->head.context;
    own->worker = &lane->w->head;
    for (uint32_t i = 0; i < bml->n_paths; i++) {
        const struct st_btl *b = bml->paths[i].ep->btl;
        uint32_t most = b->max_send - ST_BTL_HDR_MAX; /* the message's own header travels as payload */
        own->max_send = i ? lane_least(own->max_send, most) : most;
        own->pipeline_send = i ? lane_least(own->pipeline_send, b->pipeline_send) : b->pipeline_send;
        own->eager_limit = i ? lane_least(own->eager_limit, b->eager_limit) : b->eager_limit;
    }
    own->pipeline_send = lane_least(own->pipeline_send, own->max_send);
    own->eager_limit = lane_least(own->eager_limit, own->max_send);
    own->max_overtaking = LANE_WINDOW - 1;
    own->facts = st_btl_facts_of(bml->paths[0].ep);
}

static void lane_learn_ways(struct st_lane *lane)
{
    const struct st_bml_peer *bml = lane->peer->bml;

    lane_attributes(lane, bml);
    lane->n_ways = bml->n_paths;
    for (uint32_t i = 0; i < lane->n_ways; i++)
        lane->way[i] =
            (struct lane_way){.ep = {&lane->btl, lane->peer->rank, lane_caps(bml->paths[i].ep)}, .lane = lane};
}

struct st_lane *lane_get(struct worker *w, struct st_peer *peer)
{
    struct st_lane *lane = peer->lane;

    if (lane)
        return lane;
    lane = calloc(1, sizeof(*lane));
    if (!lane)
        return NULL;
    lane->w = w;
    lane->peer = peer;
    st_list_init(&lane->mended);
    peer->lane = lane;
    if (peer->bml)
        lane_learn_ways(lane);
    w->lane_bytes += sizeof(*lane);
    return lane;
}

int lane_connect(struct worker *w, struct st_peer *peer)
{
    const struct st_bml_peer *bml = peer->bml;
    bool wanted = bml->n_paths > 1 || lane_keeps(w, bml->paths[0].ep->btl);

    if (peer->lane)
        lane_learn_ways(peer->lane);
    else if (wanted && !lane_get(w, peer))
        return STRATA_ERR_NOMEM;
    peer->by_lane = wanted;
    return STRATA_OK;
}

void lane_destroy(struct worker *w, struct st_peer *peer)
{
    struct st_lane *lane = peer->lane;

    if (!lane)
        return;
    for (uint32_t i = lane->oldest; i != lane->next; i++)
        lane_keep_put(lane->w, lane->kept[i % LANE_WINDOW]);
    st_list_remove(&lane->mended);
    w->lane_bytes -= sizeof(*lane);
    for (int i = 0; i < ST_AM_CLIENTS; i++)
        w->lane_bytes -= lane->kept_of[i].bytes;
    free(lane);
    peer->lane = NULL;
}
