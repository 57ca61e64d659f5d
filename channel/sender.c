/* The sender's end of a channel. */
#include <stdlib.h>
#include <string.h>

#include "channel/long.h"
#include "channel/slots.h"
#include "framework/base/context.h"

struct sender_opening {
    struct channels *ch;
    struct channel_peer *with;
    int rank;
};

static int sender_contact(void *arg)
{
    struct sender_opening *o = arg;
    int rc = channel_peer_of(o->ch, o->rank, true, &o->with);

    if (rc != STRATA_OK)
        return rc;
    uint8_t path = st_peer_path_up(o->with->peer, 0);
    bool can = path == ST_NO_PATH || channel_can_go(st_peer_path(o->with->peer, path));
    return can ? STRATA_OK : STRATA_ERR_UNSUPPORTED;
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

struct channel_offer *channel_offer_find(strata_channel_sender_t *c)
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

    if (channel_slots_are_open(c) || c->rc != STRATA_OK)
        return c->rc;
    if (peer->failed)
        return c->rc = peer->failed;
    if (!c->offer && (c->offer = channel_offer_find(c)) == NULL)
        return STRATA_ERR_AGAIN;
    c->offer->sender = c;
    if (c->offer->stopped)
        return c->rc = STRATA_ERR_PEER;
    int rc = channel_slots_open(c);
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
    rc = channel_slots_reserve(c, (uint32_t)call->length, &view);
    if (rc == STRATA_OK)
        *call->view = channel_view(&view);
    return rc;
}

static void sender_ask_room(void *arg)
{
    const struct sender_call *call = arg;

    channel_slots_ask(call->c, call->length);
}

/* Whether a message goes by a mapped ring now, without the lock. */
static inline bool sender_is_fast(strata_channel_sender_t *c, size_t length)
{
    return c->mapped.ring && !atomic_load_explicit(&c->slow, memory_order_relaxed) && mapped_room(&c->mapped, length);
}

int strata_channel_reserve(strata_channel_sender_t *c, size_t length, int64_t limit_ms, strata_channel_view_t *view)
{
    struct st_landing_view at;

    if (!c || !view)
        return STRATA_ERR_ARG;
    if (ST_LIKELY(sender_is_fast(c, length))) {
        c->reserved = NULL;
        mapped_reserve(&c->mapped, (uint32_t)length, &at);
        *view = channel_view(&at);
        return STRATA_OK;
    }
    return channel_try_asking(c->ch, sender_reserve, sender_ask_room, &(struct sender_call){c, length, view}, limit_ms);
}

int strata_channel_commit(strata_channel_sender_t *c, size_t length)
{
    int rc = STRATA_ERR_STATE;

    if (!c)
        return STRATA_ERR_ARG;
    if (ST_LIKELY(c->mapped.reserved > length && !c->reserved && sender_is_fast(c, length))) {
        mapped_commit(&c->mapped, (uint32_t)length, 0);
        return channel_slots_pack(c);
    }
    st_worker_lock(c->ch->w);
    if (channel_slots_are_open(c))
        rc = c->reserved                ? channel_out_commit(c, length)
             : length > ST_LANDING_MOST ? STRATA_ERR_ARG
                                        : channel_slots_commit(c, (uint32_t)length, 0);
    st_worker_unlock(c->ch->w);
    return rc;
}

/* Into the next slot of a mapped ring, where the receiver waits for it. */
static inline void sender_copy(strata_channel_sender_t *c, const void *data, uint32_t length)
{
    const struct mapped_out *m = &c->mapped;
    struct st_landing_view at;

    mapped_view(m->ring, m->at, m->capacity, length, &at);
    if (ST_UNLIKELY(at.second_len))
        st_landing_fill(&at, data);
    else if (length <= 64)
        st_copy(at.first, data, length);
    else
        st_copy_shared(at.first, data, length, c->ch->copy_least);
}

static ST_COLD int sender_send(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms)
{
    strata_channel_view_t view;
    int rc = strata_channel_reserve(c, length, limit_ms, &view);

    if (rc != STRATA_OK)
        return rc;
    if (length && view.first_len)
        st_copy_shared(view.first, data, view.first_len, c->mapped.ring ? c->ch->copy_least : UINT32_MAX);
    if (length && view.second_len)
        st_copy_long(view.second, (const char *)data + view.first_len, view.second_len);
    return strata_channel_commit(c, length);
}

struct sender_data {
    strata_channel_sender_t *c;
    const void *data;
    size_t length;
};

static int sender_try(void *arg)
{
    const struct sender_data *call = arg;

    call->c->reserved = NULL;
    return call->c->landing ? channel_slots_send(call->c, call->data, call->length) : STRATA_ERR_UNSUPPORTED;
}

/* Not by a mapped ring, or not at once. Where puts fill the ring many messages have a way of their own: one hold of the
 * lock, one put or send. */
static int sender_by_puts(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms)
{
    struct sender_data call = {c, data, length};

    st_worker_lock(c->ch->w);
    int rc = sender_try(&call);
    st_worker_unlock(c->ch->w);
    if (ST_UNLIKELY(rc == STRATA_ERR_AGAIN))
        rc = channel_try(c->ch, sender_try, &call, limit_ms);
    return ST_LIKELY(rc != STRATA_ERR_UNSUPPORTED) ? rc : sender_send(c, data, length, limit_ms);
}

static int sender_by_copy(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms)
{
    if (!sender_is_fast(c, length))
        return sender_by_puts(c, data, length, limit_ms);
    sender_copy(c, data, (uint32_t)length);
    mapped_commit(&c->mapped, (uint32_t)length, 0);
    return channel_slots_pack(c);
}

int strata_channel_send(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms)
{
    if (ST_UNLIKELY(!c || (!data && length)))
        return STRATA_ERR_ARG;
    if (length >= c->ch->direct_min && limit_ms < 0)
        return channel_direct_send(c, data, length, sender_by_copy);
    return sender_by_copy(c, data, length, limit_ms);
}

/* With the lock held. */
static int sender_flush(strata_channel_sender_t *c)
{
    channel_unkeep(c);
    return channel_slots_are_open(c) ? channel_slots_flush(c) : c->rc;
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
        rc = channel_slots_end(c);
    c->ended = c->ended || rc == STRATA_OK;
    return rc;
}

static void sender_ask_end_room(void *arg)
{
    strata_channel_sender_t *c = arg;

    channel_slots_ask(c, 0);
}

int strata_channel_end(strata_channel_sender_t *c, int64_t limit_ms)
{
    return c ? channel_try_asking(c->ch, sender_end, sender_ask_end_room, c, limit_ms) : STRATA_ERR_ARG;
}

static int sender_finish(void *arg)
{
    strata_channel_sender_t *c = arg;
    int rc = sender_end(c);

    return rc == STRATA_OK ? channel_slots_finished(c) : rc;
}

static void sender_ask_to_finish(void *arg)
{
    strata_channel_sender_t *c = arg;

    if (!c->ended)
        channel_slots_ask(c, 0);
}

int strata_channel_finish(strata_channel_sender_t *c, int64_t limit_ms)
{
    return c ? channel_try_asking(c->ch, sender_finish, sender_ask_to_finish, c, limit_ms) : STRATA_ERR_ARG;
}

void channel_sender_bye(strata_channel_sender_t *c)
{
    if (!c->offer)
        return;
    struct channel_head bye = {.kind = CHANNEL_BYE, .ring = c->offer->card.card.name};
    (void)channel_table_set(c->ch, &c->with->offers, bye.ring, NULL);
    channel_free(c->ch, c->offer, sizeof(*c->offer));
    c->offer = NULL;
    (void)channel_tell(c->ch, c->with->peer, &bye, NULL, 0); /* a failed peer needs none */
}

void channel_sender_free(strata_channel_sender_t *c)
{
    channel_out_close(c);
    channel_direct_close(c);
    channel_free(c->ch, c, sizeof(*c));
}

int strata_channel_close_send(strata_channel_sender_t *c)
{
    if (!c)
        return STRATA_ERR_ARG;
    struct channels *ch = c->ch;
    int rc = strata_channel_finish(c, STRATA_CHANNEL_FOREVER);
    channel_slots_close(c);
    st_worker_lock(ch->w);
    channel_sender_bye(c);
    channel_sender_free(c);
    st_worker_unlock(ch->w);
    return rc;
}
