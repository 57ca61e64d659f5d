/* Links: a peer that has failed for us, while all may look well to it: it is told, and may give us up. */
#include "link.h"
#include "ob1.h"
#include "wire.h"

/* Not by a way of the link, whose state no longer counts. */
static int refuse(struct st_btl_endpoint *ep)
{
    struct wire_link h = {.type = OB1_LINK_ACK, .flags = OB1_F_GAVE_UP};

    return ep->btl->ops->send(ep, ST_AM_PML, &h, sizeof(h), NULL, 0);
}

void ob1_link_refuse_answer(struct ob1_peer *peer, const struct st_frag *frag)
{
    struct wire_link theirs;

    if (!peer->bml || !wire_copy(frag, &theirs, sizeof(theirs)) || (theirs.flags & OB1_F_GAVE_UP))
        return;
    for (uint32_t i = 0; i < peer->bml->n_paths; i++)
        if (peer->bml->paths[i].ep->btl == frag->btl)
            (void)refuse(peer->bml->paths[i].ep);
}

void ob1_link_refuse_begin(struct ob1_link *link, uint64_t now)
{
    link->refuse_ways = (uint8_t)((1u << link->n_ways) - 1);
    link->refuse_end_ns = now + (uint64_t)link->pml->config.path_wait_ms * 1000000u;
}

bool ob1_link_refuse(struct ob1_link *link, uint64_t now)
{
    const struct st_bml_peer *peer = link->peer->bml;

    for (uint32_t i = 0; i < link->n_ways; i++)
        if (link->refuse_ways & 1u << i && (i >= peer->n_paths || refuse(peer->paths[i].ep) != STRATA_ERR_AGAIN))
            link->refuse_ways &= (uint8_t) ~(1u << i);
    return link->refuse_ways && now < link->refuse_end_ns;
}
