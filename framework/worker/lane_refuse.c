/* Lanes: a peer that has failed for us, while all may look well to it: it is told, and may give us up. */
#include "framework/worker/lane.h"

/* Not by a way of the lane, whose state no longer counts. */
static int lane_refuse_send(struct st_btl_endpoint *ep)
{
    struct lane_head h = {.kind = LANE_WORD, .flags = LANE_F_GAVE_UP};

    return ep->btl->ops->send(ep, ST_AM_LANE, &h, sizeof(h), NULL, 0);
}

void lane_refuse_answer(struct st_peer *peer, const struct st_frag *frag)
{
    for (uint32_t i = 0; peer->bml && i < peer->bml->n_paths; i++)
        if (peer->bml->paths[i].ep->btl == frag->btl)
            (void)lane_refuse_send(peer->bml->paths[i].ep);
}

void lane_refuse_begin(struct st_lane *lane, uint64_t now)
{
    lane->refuse_ways = (uint8_t)((1u << lane->n_ways) - 1);
    lane->refuse_end_ns = now + (uint64_t)lane->w->head.paths.wait_ms * 1000000u;
}

bool lane_refuse(struct st_lane *lane, uint64_t now)
{
    const struct st_bml_peer *peer = lane->peer->bml;

    for (uint32_t i = 0; i < lane->n_ways; i++)
        if (lane->refuse_ways & 1u << i &&
            (i >= peer->n_paths || lane_refuse_send(peer->paths[i].ep) != STRATA_ERR_AGAIN))
            lane->refuse_ways &= (uint8_t) ~(1u << i);
    return lane->refuse_ways && now < lane->refuse_end_ns;
}
