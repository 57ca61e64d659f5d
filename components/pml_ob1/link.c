/* Links: made and destroyed. See link.h. */
#include "link.h"
#include <stdlib.h>
#include "ob1_inl.h"

static const struct st_btl_ops link_ops = {.send = ob1_link_send, .send_payload = ob1_link_send_payload};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What goes over one path must be able to go over any. */
static void attributes(struct ob1_link *link, const struct st_bml_peer *bml)
{
    struct st_btl *own = &link->btl;

    own->ops = &link_ops;
    own->context = link->pml->head.context;
    for (uint32_t i = 0; i < bml->n_paths; i++) {
        const struct st_btl *b = bml->paths[i].ep->btl;
        uint32_t most = b->max_send - ST_BTL_HDR_MAX; /* the message's own header travels as payload */
        own->max_send = i ? least(own->max_send, most) : most;
        own->pipeline_send = i ? least(own->pipeline_send, b->pipeline_send) : b->pipeline_send;
        own->eager_limit = i ? least(own->eager_limit, b->eager_limit) : b->eager_limit;
    }
    own->pipeline_send = least(own->pipeline_send, own->max_send);
    own->eager_limit = least(own->eager_limit, own->max_send);
    own->stream_limit = bml->paths[0].ep->btl->stream_limit;
}

static void learn_ways(struct ob1_link *link)
{
    const struct st_bml_peer *bml = link->peer->bml;

    attributes(link, bml);
    link->n_ways = bml->n_paths;
    for (uint32_t i = 0; i < link->n_ways; i++)
        link->way[i] =
            (struct ob1_way){.ep = {&link->btl, link->peer->rank, ob1_link_caps(bml->paths[i].ep)}, .link = link};
}

struct ob1_link *ob1_link_get(struct ob1 *pml, struct ob1_peer *peer)
{
    struct ob1_link *link = peer->link;

    if (link)
        return link;
    link = calloc(1, sizeof(*link));
    if (!link)
        return NULL;
    link->pml = pml;
    link->peer = peer;
    st_list_init(&link->mended);
    peer->link = link;
    if (peer->bml)
        learn_ways(link);
    pml->link_bytes += sizeof(*link);
    return link;
}

int ob1_link_connect(struct ob1 *pml, struct ob1_peer *peer)
{
    const struct st_bml_peer *bml = peer->bml;
    bool wanted = bml->n_paths > 1 || (pml->config.path_keep && (bml->paths[0].ep->btl->caps & ST_BTL_MENDS));

    if (peer->link)
        learn_ways(peer->link);
    else if (wanted && !ob1_link_get(pml, peer))
        return STRATA_ERR_NOMEM;
    peer->by_link = wanted;
    return STRATA_OK;
}

void ob1_link_destroy(struct ob1 *pml, struct ob1_peer *peer)
{
    struct ob1_link *link = peer->link;

    if (!link)
        return;
    for (uint32_t i = link->oldest; i != link->next; i++)
        free(link->kept[i % OB1_LINK_WINDOW]);
    st_list_remove(&link->mended);
    pml->link_bytes -= sizeof(*link) + link->bytes;
    free(link);
    peer->link = NULL;
}
