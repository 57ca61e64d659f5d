/* Long messages at the sender. */
#include <string.h>

#include "channel/long.h"
#include "channel/slots.h"

static struct st_peer *out_peer(const struct channel_out *o)
{
    return o->c->with->peer;
}

/* Sends the parts that were asked for. */
static int out_run(void *arg, struct st_work *work)
{
    struct channel_out *o = ST_CONTAINER(work, struct channel_out, work);
    struct st_btl_endpoint *ep = st_peer_way(out_peer(o), 0);
    uint32_t part = o->part;

    o->queued = false;
    while (o->at < o->end) {
        struct channel_head head = {
            .kind = CHANNEL_PART, .ring = o->c->offer->card.card.name, .id = o->id, .offset = o->at};
        uint64_t left = o->end - o->at;
        uint32_t len = left < part ? (uint32_t)left : part;
        int rc = ep->btl->ops->send(ep, ST_AM_STREAM, &head, sizeof(head), o->memory.at + o->at, len);
        if (rc == STRATA_ERR_AGAIN) {
            o->queued = true;
            return rc;
        }
        if (rc != STRATA_OK) {
            o->at = o->end;
            st_worker_peer_failed(((struct channels *)arg)->w, out_peer(o)->rank, rc,
                                  "a part of a channel's message could not be sent");
            return STRATA_OK;
        }
        o->at += len;
    }
    return STRATA_OK;
}

static void out_drop(void *arg, struct st_work *work, int rc)
{
    struct channel_out *o = ST_CONTAINER(work, struct channel_out, work);

    (void)arg, (void)rc;
    o->queued = false;
    o->at = o->end;
}

static const struct st_work_ops out_work = {ST_AM_STREAM, out_run, out_drop};

static void out_stop(struct channel_out *o)
{
    if (o->queued)
        st_list_remove(&o->work.node);
    o->queued = false;
    o->at = o->end = 0;
}

static int out_alloc(strata_channel_sender_t *c)
{
    if (!c->longs)
        c->longs = channel_alloc(c->ch, (CHANNEL_LONGS + 1) * sizeof(*c->longs));
    return c->longs ? STRATA_OK : STRATA_ERR_NOMEM;
}

/* One that is free, with memory for `length` bytes. */
static int out_find(strata_channel_sender_t *c, size_t length, struct channel_out **out)
{
    struct channel_out *o = NULL;

    if (out_alloc(c) != STRATA_OK)
        return STRATA_ERR_NOMEM;
    for (unsigned i = 0; i < CHANNEL_LONGS && !o; i++)
        if (!c->longs[i].sent)
            o = &c->longs[i];
    if (!o)
        return STRATA_ERR_AGAIN;
    if (o->memory.got < length || !o->memory.at) {
        channel_memory_put(c->ch, &o->memory);
        int rc = channel_memory_get(c->ch, &o->memory, length);
        if (rc != STRATA_OK)
            return rc;
    }
    *out = o;
    return STRATA_OK;
}

int channel_out_reserve(strata_channel_sender_t *c, size_t length, strata_channel_view_t *view)
{
    struct st_btl *btl = st_peer_path(c->with->peer, (uint8_t)c->offer->card.path)->btl;
    struct channel_out *o;
    int rc = out_find(c, length, &o);

    if (rc == STRATA_ERR_AGAIN)
        (void)channel_slots_flush(c); /* the receiver must see those that are in the way */
    if (rc != STRATA_OK)
        return channel_slots_rc(c) != STRATA_OK ? channel_slots_rc(c) : rc;
    rc = channel_slots_reserve(c, sizeof(struct channel_long), &o->slot);
    if (rc == STRATA_OK)
        rc = channel_memory_register(&o->memory, btl, o->memory.got, ST_BTL_SOURCE);
    if (rc == STRATA_ERR_AGAIN || channel_slots_rc(c) != STRATA_OK)
        return rc;
    o->has_key = rc == STRATA_OK; /* or by parts */
    o->c = c;
    o->length = length;
    c->reserved = o;
    *view = (strata_channel_view_t){.first = o->memory.at, .first_len = length};
    return STRATA_OK;
}

/* Commits the descriptor in its slot. */
static int out_announce(struct channel_out *o, size_t length)
{
    strata_channel_sender_t *c = o->c;
    struct st_btl *btl = st_peer_way(c->with->peer, 0)->btl;

    o->length = length;
    o->id = ++c->ch->next_id;
    o->part = btl->max_send;
    o->work = (struct st_work){.ops = &out_work};
    struct channel_long d = {.length = length,
                             .address = (uint64_t)(uintptr_t)o->memory.at,
                             .id = o->id,
                             .part = o->part,
                             .has_key = o->has_key};
    memcpy(d.key, o->memory.reg.key, sizeof(d.key));
    st_landing_fill(&o->slot, &d);
    int rc = channel_slots_commit(c, sizeof(d), ST_LANDING_MARKED);
    o->sent = rc == STRATA_OK;
    return rc;
}

int channel_out_commit(strata_channel_sender_t *c, size_t length)
{
    struct channel_out *o = c->reserved;

    if (length > o->length)
        return STRATA_ERR_ARG;
    c->reserved = NULL;
    return out_announce(o, length);
}

/* ---- in the user's memory ---- */

int channel_out_direct(strata_channel_sender_t *c, const void *data, size_t length)
{
    const struct st_btl_endpoint *ep = st_peer_path(c->with->peer, (uint8_t)c->offer->card.path);

    if (!(ep->caps & ST_BTL_GET) || out_alloc(c) != STRATA_OK)
        return STRATA_ERR_AGAIN;
    struct channel_out *o = &c->longs[CHANNEL_LONG_DIRECT];
    int rc = channel_slots_reserve(c, sizeof(struct channel_long), &o->slot);
    if (rc != STRATA_OK)
        return rc;
    o->memory = (struct channel_memory){.at = (char *)(uintptr_t)data};
    rc = channel_memory_register(&o->memory, ep->btl, length, ST_BTL_SOURCE);
    if (rc != STRATA_OK)
        return channel_slots_rc(c) != STRATA_OK ? channel_slots_rc(c) : STRATA_ERR_AGAIN;
    o->has_key = true;
    o->c = c;
    rc = out_announce(o, length);
    if (rc != STRATA_OK)
        channel_memory_put(c->ch, &o->memory);
    return rc;
}

int channel_out_is_taken(strata_channel_sender_t *c)
{
    struct channel_out *o = &c->longs[CHANNEL_LONG_DIRECT];
    int rc = channel_slots_rc(c);

    if (o->sent && rc == STRATA_OK)
        return STRATA_ERR_AGAIN;
    if (!o->sent)
        rc = STRATA_OK;
    out_stop(o);
    o->sent = false;
    channel_memory_put(c->ch, &o->memory);
    return rc;
}

/* ---- requests of the receiver ---- */

/* The message of that id, or NULL. */
static struct channel_out *out_by_id(strata_channel_sender_t *c, uint32_t id)
{
    for (unsigned i = 0; c->longs && i <= CHANNEL_LONG_DIRECT; i++)
        if (c->longs[i].sent && c->longs[i].id == id)
            return &c->longs[i];
    return NULL;
}

const char *channel_out_taken(strata_channel_sender_t *c, uint32_t id)
{
    struct channel_out *o = out_by_id(c, id);

    if (!o)
        return NULL; /* of a channel that was closed since, which had the same name */
    out_stop(o);
    o->sent = false;
    return NULL;
}

const char *channel_out_pull(strata_channel_sender_t *c, const struct channel_head *head)
{
    struct channel_out *o = out_by_id(c, head->id);

    if (!o || o->at < o->end || head->offset > o->length || head->length > o->length - head->offset)
        return "a request for parts of a channel's message that cannot be true";
    o->at = head->offset;
    o->end = head->offset + head->length;
    if (out_run(c->ch, &o->work) == STRATA_ERR_AGAIN)
        st_worker_queue(c->ch->w, c->with->peer, ST_WORK_BULK, &o->work);
    return NULL;
}

int strata_channel_taken(strata_channel_sender_t *c)
{
    bool all = true;

    if (!c)
        return STRATA_ERR_ARG;
    st_worker_lock(c->ch->w);
    int rc = channel_slots_are_open(c) ? channel_slots_rc(c) : c->rc;
    for (unsigned i = 0; c->longs && i <= CHANNEL_LONG_DIRECT; i++)
        all = all && !c->longs[i].sent;
    st_worker_unlock(c->ch->w);
    return rc != STRATA_OK ? rc : all ? STRATA_OK : STRATA_ERR_AGAIN;
}

void channel_out_close(strata_channel_sender_t *c)
{
    for (unsigned i = 0; c->longs && i < CHANNEL_LONGS; i++) {
        out_stop(&c->longs[i]);
        channel_memory_put(c->ch, &c->longs[i].memory);
    }
    channel_free(c->ch, c->longs, (CHANNEL_LONGS + 1) * sizeof(*c->longs));
    c->longs = c->reserved = NULL;
}
