/* Links: numbering, keeping and sending. */
#include "link.h"
#include <stdlib.h>
#include "ob1_inl.h"

uint32_t ob1_link_way(const struct ob1_link *link, uint32_t way)
{
    if (OB1_LIKELY(way < link->n_ways && link->way[way].state == OB1_WAY_UP))
        return way;
    for (uint32_t i = 0; i < link->n_ways; i++)
        if (link->way[i].state == OB1_WAY_UP)
            return i;
    return OB1_LINK_NO_WAY;
}

static int send_head(struct ob1_link *link, uint32_t way, struct wire_link *h, const void *data, uint32_t len)
{
    struct st_btl_endpoint *ep = link->peer->bml->paths[way].ep;
    int rc;

    h->ack = link->expected;
    rc = ep->btl->ops->send(ep, ST_AM_PML, h, sizeof(*h), data, len);
    if (rc != STRATA_OK)
        return rc;
    link->told = h->ack;
    link->untold_bytes = 0;
    link->ack_due = false;
    return STRATA_OK;
}

int ob1_link_put_on(struct ob1_link *link, uint32_t way, struct ob1_kept *k, uint8_t flags)
{
    struct wire_link h = {.type = OB1_LINK, .flags = flags, .hdr_len = k->hdr_len, .seq = k->seq};
    uint32_t by;

    while ((by = ob1_link_way(link, way)) != OB1_LINK_NO_WAY) {
        int rc;
        if (by != way)
            h.flags |= OB1_F_DIVERTED;
        rc = send_head(link, by, &h, k->bytes, k->size);
        if (rc != STRATA_ERR_PEER)
            return rc;
        ob1_link_way_down(link, by, "a message could not be sent");
    }
    return link->peer->failed ? link->peer->failed : STRATA_ERR_AGAIN;
}

int ob1_link_tell(struct ob1_link *link, uint32_t way, uint8_t flags, uint32_t lost, uint8_t word)
{
    struct wire_link h = {.type = OB1_LINK_ACK, .flags = flags, .word = word, .seq = link->next, .lost = lost};

    return send_head(link, way, &h, NULL, 0);
}

/* What waits to be sent again goes first: it is what the peer waits for. */
static bool room(const struct ob1_link *link)
{
    return link->next - link->oldest < OB1_LINK_WINDOW && link->bytes < OB1_LINK_BYTES &&
           link->again == link->again_end;
}

static struct ob1_kept *make(const void *hdr, uint32_t hdr_len, uint32_t len)
{
    struct ob1_kept *k = malloc(sizeof(*k) + hdr_len + len);

    if (!k)
        return NULL;
    k->hdr_len = (uint8_t)hdr_len;
    k->size = hdr_len + len;
    memcpy(k->bytes, hdr, hdr_len);
    return k;
}

/* Takes k. */
static int send_new(struct ob1_way *w, struct ob1_kept *k)
{
    struct ob1_link *link = w->link;
    int rc;

    k->seq = link->next;
    rc = ob1_link_put_on(link, (uint32_t)(w - link->way), k, 0);
    if (rc != STRATA_OK) {
        free(k);
        return rc;
    }
    link->kept[k->seq % OB1_LINK_WINDOW] = k;
    link->next++;
    link->bytes += sizeof(*k) + k->size;
    link->pml->link_bytes += sizeof(*k) + k->size;
    /* Nothing was waiting to go again; nothing is. */
    link->again = link->again_end = link->next;
    return STRATA_OK;
}

int ob1_link_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len)
{
    struct ob1_way *w = ST_CONTAINER(ep, struct ob1_way, ep);
    struct ob1_kept *k;

    (void)am; /* the PML's */
    if (!room(w->link) || !(k = make(hdr, hdr_len, len)))
        return STRATA_ERR_AGAIN;
    if (len)
        st_copy_long(k->bytes + hdr_len, data, len);
    return send_new(w, k);
}

int ob1_link_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                          const struct st_payload *payload)
{
    struct ob1_way *w = ST_CONTAINER(ep, struct ob1_way, ep);
    struct ob1_kept *k;
    int rc;

    (void)am;
    if (!room(w->link) || !(k = make(hdr, hdr_len, (uint32_t)payload->length)))
        return STRATA_ERR_AGAIN;
    rc = st_payload_gather(payload, k->bytes + hdr_len);
    if (rc != STRATA_OK) {
        free(k);
        return rc;
    }
    return send_new(w, k);
}

void ob1_link_acked(struct ob1_link *link, uint32_t ack)
{
    while (link->oldest != ack) {
        struct ob1_kept *k = link->kept[link->oldest % OB1_LINK_WINDOW];
        size_t bytes = sizeof(*k) + k->size;
        link->bytes -= bytes;
        link->pml->link_bytes -= bytes;
        free(k);
        if (link->again == link->oldest && link->again != link->again_end)
            link->again++;
        link->oldest++;
    }
}
