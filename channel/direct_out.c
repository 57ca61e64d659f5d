/* Direct messages at the sender, where the ring is filled by puts. */
#include <string.h>

#include "channel/direct.h"
#include "channel/slots.h"

bool channel_put_wanted(const strata_channel_sender_t *c, size_t length)
{
    const struct channel_direct *d = c->direct;

    return d->wanted && c->landing && d->at == st_landing_sender_out(c->landing)->committed && length <= d->want.length;
}

static void put_done(struct st_notify *n, int rc)
{
    struct channel_direct *d = ST_CONTAINER(n, struct channel_direct, put);

    d->busy = false;
    d->rc = rc;
}

int channel_put_straight(strata_channel_sender_t *c, const void *data, size_t length)
{
    struct channel_direct *d = c->direct;
    struct st_peer *peer = c->with->peer;
    uint8_t path = (uint8_t)c->offer->card.path;
    struct channel_straight straight = {.length = length};
    struct st_landing_view slot;
    int rc = channel_slots_reserve(c, sizeof(straight), &slot);

    if (rc != STRATA_OK)
        return rc;
    d->memory = (struct channel_memory){.at = (char *)(uintptr_t)data};
    if (channel_memory_register(&d->memory, st_peer_path(peer, path)->btl, length, ST_BTL_SOURCE) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    struct st_notify_put put = {.local = data,
                                .reg = &d->memory.reg,
                                .remote = d->want.address,
                                .key = d->want.key,
                                .len = length,
                                .am = ST_AM_STREAM,
                                .notice = st_landing_client_notice(c->offer->card.card.name)};
    d->put.done = put_done;
    d->rc = STRATA_OK;
    d->busy = true;
    rc = st_worker_put_notify(c->ch->w, peer, path, &put, &d->put);
    d->busy = d->busy && rc == STRATA_OK;
    if (rc != STRATA_OK && rc != 1) {
        channel_memory_put(c->ch, &d->memory);
        return rc == STRATA_ERR_UNSUPPORTED ? STRATA_ERR_AGAIN : rc;
    }
    d->wanted = false;
    st_landing_fill(&slot, &straight);
    rc = channel_slots_commit(c, sizeof(straight), ST_LANDING_MARKED);
    if (rc == STRATA_OK)
        rc = channel_slots_flush(c);
    if (rc != STRATA_OK && d->rc == STRATA_OK)
        d->rc = rc;
    return STRATA_OK;
}

int channel_put_is_done(strata_channel_sender_t *c)
{
    struct channel_direct *d = c->direct;

    if (d->busy)
        return STRATA_ERR_AGAIN;
    channel_memory_put(c->ch, &d->memory);
    if (d->rc != STRATA_OK) /* the receiver would wait for ever */
        channel_slots_fail(c, d->rc);
    return d->rc == STRATA_OK ? channel_slots_rc(c) : d->rc;
}

void channel_put_wish(strata_channel_sender_t *c, uint32_t classes)
{
    struct channel_head head = {.kind = CHANNEL_WISH, .ring = c->offer->card.card.name, .length = classes};

    c->direct->wished = classes;
    (void)channel_tell(c->ch, c->with->peer, &head, NULL, 0); /* without it messages go by copies */
}

const char *channel_put_want(strata_channel_sender_t *c, uint64_t at, const void *data)
{
    struct channel_direct *d = c->direct;

    if (!d || !c->landing)
        return "a receiver waits for what nobody sends";
    memcpy(&d->want, data, sizeof(d->want));
    d->at = at;
    d->wanted = true;
    return NULL;
}
