/* The sender's end of a channel. */
#include <stdlib.h>
#include <string.h>

#include "channel/long.h"
#include "framework/base/context.h"

struct sender_opening {
    struct channels *ch;
    struct channel_peer *with;
    int rank;
};

static int sender_contact(void *arg)
{
    struct sender_opening *o = arg;

    return channel_peer_of(o->ch, o->rank, true, &o->with);
}

int strata_channel_open_send(strata_t *s, int rank, const char *name, strata_channel_sender_t **out)
{
    int rc = out ? channel_check(s, rank, name) : STRATA_ERR_ARG;
    struct sender_opening o = {.rank = rank};

    if (rc != STRATA_OK)
        return rc;
    o.ch = s->channels;
    rc = channel_try(o.ch, sender_contact, &o, STRATA_CHANNEL_FOREVER);
    if (rc != STRATA_OK)
        return rc;
    strata_channel_sender_t *c = channel_alloc(o.ch, sizeof(*c));
    if (!c)
        return STRATA_ERR_NOMEM;
    c->ch = o.ch;
    c->with = o.with;
    memcpy(c->name, name, strlen(name));
    *out = c;
    return STRATA_OK;
}

static struct channel_offer *sender_find(strata_channel_sender_t *c)
{
    for (uint32_t i = 0; i < c->with->offers.n; i++) {
        struct channel_offer *o = channel_offer_of(c->with, i);
        if (o && o->carded && !o->sender && strcmp(o->card.name, c->name) == 0)
            return o;
    }
    return NULL;
}

/* Opens the ring when the receiver has offered it. */
static int sender_ready(strata_channel_sender_t *c)
{
    struct st_peer *peer = c->with->peer;

    if (c->landing || c->rc != STRATA_OK)
        return c->rc;
    if (peer->failed)
        return c->rc = peer->failed;
    if (!c->offer && (c->offer = sender_find(c)) == NULL)
        return STRATA_ERR_AGAIN;
    c->offer->sender = c;
    if (c->offer->stopped)
        return c->rc = STRATA_ERR_PEER;
    struct st_landing_where at = {
        .worker = c->ch->w, .peer = peer, .path = (uint8_t)c->offer->card.path, .am = ST_AM_STREAM};
    int rc = st_landing_sender_open(&at, &c->offer->card.card, &c->landing);
    if (rc != STRATA_OK && rc != STRATA_ERR_AGAIN)
        c->rc = rc;
    return rc;
}

struct sender_call {
    strata_channel_sender_t *c;
    size_t length;
    strata_channel_view_t *view;
};

static int sender_reserve(void *arg)
{
    struct sender_call *call = arg;
    strata_channel_sender_t *c = call->c;
    struct st_landing_view view;
    int rc = sender_ready(c);

    if (rc != STRATA_OK)
        return rc;
    c->reserved = NULL;
    if (call->length > c->offer->card.card.size - STRATA_CHANNEL_HEAD)
        return channel_out_reserve(c, call->length, call->view);
    rc = st_landing_sender_reserve(c->landing, (uint32_t)call->length, &view);
    if (rc == STRATA_OK)
        *call->view = channel_view(&view);
    return rc;
}

int strata_channel_reserve(strata_channel_sender_t *c, size_t length, int64_t limit_ms, strata_channel_view_t *view)
{
    if (!c || !view)
        return STRATA_ERR_ARG;
    return channel_try(c->ch, sender_reserve, &(struct sender_call){c, length, view}, limit_ms);
}

/* With the lock held. */
static int sender_commit(strata_channel_sender_t *c, size_t length)
{
    bool keep = st_landing_sender_out(c->landing)->n_puts > 0;
    unsigned how = keep ? ST_LANDING_KEEP : 0;
    int rc;

    if (c->reserved)
        rc = channel_out_commit(c, length, how);
    else
        rc = length > ST_LANDING_MOST ? STRATA_ERR_ARG : st_landing_sender_commit(c->landing, (uint32_t)length, how);
    if (keep && !c->is_kept) {
        c->is_kept = true;
        st_list_append(&c->ch->kept, &c->kept);
        st_worker_attend(c->ch->w, ST_ATTEND_WORK << ST_AM_STREAM);
    }
    return rc;
}

int strata_channel_commit(strata_channel_sender_t *c, size_t length)
{
    if (!c)
        return STRATA_ERR_ARG;
    st_worker_lock(c->ch->w);
    int rc = c->landing ? sender_commit(c, length) : STRATA_ERR_STATE;
    st_worker_unlock(c->ch->w);
    return rc;
}

int strata_channel_send(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms)
{
    strata_channel_view_t view;

    if (!c || (!data && length))
        return STRATA_ERR_ARG;
    int rc = strata_channel_reserve(c, length, limit_ms, &view);
    if (rc != STRATA_OK)
        return rc;
    if (length && view.first_len)
        st_copy_long(view.first, data, view.first_len);
    if (length && view.second_len)
        st_copy_long(view.second, (const char *)data + view.first_len, view.second_len);
    return strata_channel_commit(c, length);
}

/* With the lock held. */
static int sender_flush(strata_channel_sender_t *c)
{
    channel_unkeep(c);
    return c->landing ? st_landing_sender_flush(c->landing) : c->rc;
}

int strata_channel_flush(strata_channel_sender_t *c)
{
    if (!c)
        return STRATA_ERR_ARG;
    st_worker_lock(c->ch->w);
    int rc = sender_flush(c);
    st_worker_unlock(c->ch->w);
    return rc;
}

static int sender_end(void *arg)
{
    strata_channel_sender_t *c = arg;
    int rc = c->ended ? STRATA_OK : sender_ready(c);

    if (rc == STRATA_OK && !c->ended)
        rc = st_landing_sender_end(c->landing);
    c->ended = c->ended || rc == STRATA_OK;
    return rc;
}

int strata_channel_end(strata_channel_sender_t *c, int64_t limit_ms)
{
    return c ? channel_try(c->ch, sender_end, c, limit_ms) : STRATA_ERR_ARG;
}

static int sender_finished(void *arg)
{
    strata_channel_sender_t *c = arg;
    const struct st_landing_out *out = st_landing_sender_out(c->landing);

    if (out->rc != STRATA_OK)
        return out->rc;
    return st_landing_out_finished(out) ? STRATA_OK : STRATA_ERR_AGAIN;
}

int strata_channel_close_send(strata_channel_sender_t *c)
{
    if (!c)
        return STRATA_ERR_ARG;
    struct channels *ch = c->ch;
    int rc = strata_channel_end(c, STRATA_CHANNEL_FOREVER);
    if (rc == STRATA_OK)
        rc = channel_try(ch, sender_finished, c, STRATA_CHANNEL_FOREVER);
    struct st_landing_sender *landing = c->landing;
    st_worker_lock(ch->w);
    channel_unkeep(c);
    c->landing = NULL; /* no notice finds it */
    st_worker_unlock(ch->w);
    if (landing)
        st_landing_sender_close(landing);
    st_worker_lock(ch->w);
    if (c->offer) {
        uint32_t ring = c->offer->card.card.name;
        (void)channel_table_set(ch, &c->with->offers, ring, NULL);
        channel_free(ch, c->offer, sizeof(*c->offer));
        struct channel_head bye = {.kind = CHANNEL_BYE, .ring = ring};
        (void)channel_tell(ch, c->with->peer, &bye, NULL); /* a failed peer needs none */
    }
    channel_out_close(c);
    st_worker_unlock(ch->w);
    channel_free(ch, c, sizeof(*c));
    return rc;
}
