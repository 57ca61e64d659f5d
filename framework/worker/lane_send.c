/* Lanes: numbering, keeping and sending. */
#include <stdlib.h>

#include <strata/sdk/btl_hints.h>
#include <strata/sdk/copy.h>
#include "framework/worker/lane.h"

uint32_t lane_up(const struct st_lane *lane, uint32_t way)
{
    if (way < lane->n_ways && lane->way[way].state == LANE_WAY_UP)
        return way;
    for (uint32_t i = 0; i < lane->n_ways; i++)
        if (lane->way[i].state == LANE_WAY_UP)
            return i;
    return ST_NO_PATH;
}

static int lane_send_bytes(struct st_btl_endpoint *ep, const struct lane_head *h, const void *data, uint32_t len,
                           bool bulk)
{
    strata_data_t flat = {.kind = STRATA_CONTIGUOUS, .length = len, .u.buffer = (void *)(uintptr_t)data};
    struct st_payload payload = {&flat, 0, len};

    if (bulk && ep->btl->hints->send_bulk)
        return ep->btl->hints->send_bulk(ep, ST_AM_LANE, h, sizeof(*h), &payload);
    return ep->btl->ops->send(ep, ST_AM_LANE, h, sizeof(*h), data, len);
}

static int lane_send_head(struct st_lane *lane, uint32_t way, struct lane_head *h, const void *data, uint32_t len,
                          bool bulk)
{
    int rc;

    h->ack = lane->expected;
    rc = lane_send_bytes(lane->peer->bml->paths[way].ep, h, data, len, bulk);
    if (rc != STRATA_OK)
        return rc;
    lane->told = h->ack;
    lane->untold_bytes = 0;
    lane->ack_due = false;
    return STRATA_OK;
}

int lane_put_on(struct st_lane *lane, uint32_t way, struct lane_kept *k, uint8_t flags)
{
    struct lane_head h = {.kind = k->am, .flags = flags, .hdr_len = k->hdr_len, .seq = k->seq};
    uint32_t by;

    while ((by = lane_up(lane, way)) != ST_NO_PATH) {
        int rc;
        if (by != way)
            h.flags |= LANE_F_DIVERTED;
        rc = lane_send_head(lane, by, &h, k->bytes, k->size, k->bulk);
        if (rc != STRATA_ERR_PEER)
            return rc;
        lane_way_down(lane, by, "a message could not be sent");
    }
    return lane->peer->failed ? lane->peer->failed : STRATA_ERR_AGAIN;
}

int lane_tell(struct st_lane *lane, uint32_t way, uint8_t flags, uint32_t lost, uint8_t word)
{
    struct lane_head h = {.kind = LANE_WORD, .flags = flags, .word = word, .seq = lane->next, .lost = lost};

    return lane_send_head(lane, way, &h, NULL, 0, false);
}

/* Whether the client may have one more message kept, and the path it would go by is not known to be full. Each other
 * client keeps a right to half of an equal share of the window, so that none can shut out the rest. What waits to be
 * sent again goes first: it is what the peer waits for. A part of a long message may go by a way of its own, which is
 * not known to be full, and leaves room for messages. */
static bool lane_room(const struct lane_way *way, enum st_am am, bool bulk)
{
    const struct st_lane *lane = way->lane;
    const struct worker *w = lane->w;
    uint32_t n = lane->next - lane->oldest, right = LANE_WINDOW / 2 / w->n_clients;
    uint32_t by = lane_up(lane, (uint32_t)(way - lane->way));
    size_t bytes = 0, right_bytes = LANE_BYTES / 2 / w->n_clients;
    if (lane->again != lane->again_end ||
        (!bulk && by != ST_NO_PATH && lane->peer->bml->paths[by].ep->caps & ST_BTL_FULL))
        return false;
    for (unsigned i = 0; i < ST_AM_CLIENTS; i++) {
        const struct lane_share *of = &lane->kept_of[i];
        bytes += of->bytes;
        if (i == am || !w->clients[i].row)
            continue;
        n += of->n < right ? right - of->n : 0;
        bytes += of->bytes < right_bytes ? right_bytes - of->bytes : 0;
    }
    return bulk ? n < LANE_BULK_WINDOW && bytes < LANE_BULK_BYTES : n < LANE_WINDOW && bytes < LANE_BYTES;
}

static struct lane_kept *lane_make(struct worker *w, enum st_am am, const void *hdr, uint32_t hdr_len, uint32_t len)
{
    struct lane_kept *k = lane_keep_get(w, sizeof(*k) + hdr_len + len);

    if (!k)
        return NULL;
    k->am = (uint8_t)am;
    k->bulk = false;
    k->hdr_len = (uint8_t)hdr_len;
    k->size = hdr_len + len;
    memcpy(k->bytes, hdr, hdr_len);
    return k;
}

/* Takes k. */
static int lane_send_new(struct lane_way *w, struct lane_kept *k)
{
    struct st_lane *lane = w->lane;
    int rc;

    k->seq = lane->next;
    rc = lane_put_on(lane, (uint32_t)(w - lane->way), k, 0);
    if (rc != STRATA_OK) {
        lane_keep_put(lane->w, k);
        return rc;
    }
    lane->kept[k->seq % LANE_WINDOW] = k;
    lane->next++;
    lane->kept_of[k->am].n++;
    lane->kept_of[k->am].bytes += sizeof(*k) + k->size;
    lane->w->lane_bytes += sizeof(*k) + k->size;
    /* Nothing was waiting to go again; nothing is. */
    lane->again = lane->again_end = lane->next;
    return STRATA_OK;
}

int lane_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
              uint32_t len)
{
    struct lane_way *w = ST_CONTAINER(ep, struct lane_way, ep);
    struct lane_kept *k;

    if (!lane_room(w, am, false) || !(k = lane_make(w->lane->w, am, hdr, hdr_len, len)))
        return STRATA_ERR_AGAIN;
    if (len)
        st_copy_cached(k->bytes + hdr_len, data, len);
    return lane_send_new(w, k);
}

static int lane_send_window(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                            const struct st_payload *payload, bool bulk)
{
    struct lane_way *w = ST_CONTAINER(ep, struct lane_way, ep);
    const void *flat = st_payload_contiguous(payload);
    struct lane_kept *k;
    int rc = STRATA_OK;

    if (!lane_room(w, am, bulk) || !(k = lane_make(w->lane->w, am, hdr, hdr_len, (uint32_t)payload->length)))
        return STRATA_ERR_AGAIN;
    k->bulk = bulk;
    if (flat && payload->length)
        st_copy_cached(k->bytes + hdr_len, flat, payload->length);
    else
        rc = st_payload_gather(payload, k->bytes + hdr_len);
    if (rc != STRATA_OK) {
        lane_keep_put(w->lane->w, k);
        return rc;
    }
    return lane_send_new(w, k);
}

int lane_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                      const struct st_payload *payload)
{
    return lane_send_window(ep, am, hdr, hdr_len, payload, false);
}

int lane_send_bulk(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                   const struct st_payload *payload)
{
    return lane_send_window(ep, am, hdr, hdr_len, payload, true);
}

void lane_acked(struct st_lane *lane, uint32_t ack)
{
    while (lane->oldest != ack) {
        struct lane_kept *k = lane->kept[lane->oldest % LANE_WINDOW];
        size_t bytes = sizeof(*k) + k->size;
        lane->kept_of[k->am].n--;
        lane->kept_of[k->am].bytes -= bytes;
        lane->w->lane_bytes -= bytes;
        lane_keep_put(lane->w, k);
        if (lane->again == lane->oldest && lane->again != lane->again_end)
            lane->again++;
        lane->oldest++;
    }
}

struct st_btl_endpoint *st_lane_way(const struct st_peer *peer, uint8_t path)
{
    return &peer->lane->way[path < peer->lane->n_ways ? path : 0].ep;
}

uint8_t st_lane_path_up(const struct st_peer *peer, uint8_t path)
{
    return (uint8_t)lane_up(peer->lane, path);
}
