/* The receiver's end of a channel. */
#include <stdlib.h>
#include <string.h>

#include "channel/channel.h"
#include "framework/base/context.h"

struct receiver_opening {
    strata_channel_receiver_t *c;
    const char *name;
    uint32_t size;
    int rank;
};

/* With the lock held: makes the ring and offers it. */
static int receiver_open(void *arg)
{
    struct receiver_opening *o = arg;
    strata_channel_receiver_t *c = o->c;
    struct channel_card card = {0};
    int rc = channel_peer_of(c->ch, o->rank, true, &c->with);

    if (rc != STRATA_OK)
        return rc;
    for (c->ring = 0; c->ring < ST_LANDING_NAMES && c->with->in[c->ring]; c->ring++)
        ;
    if (c->ring == ST_LANDING_NAMES)
        return STRATA_ERR_NOMEM;
    struct st_landing_where at = {.worker = c->ch->w, .peer = c->with->peer, .am = ST_AM_STREAM};
    at.path = st_peer_path_up(at.peer, 0);
    if (at.path == ST_NO_PATH)
        return STRATA_ERR_AGAIN;
    rc = st_landing_receiver_open(&at, o->size, c->ring, &c->landing, &card.card);
    if (rc != STRATA_OK)
        return rc;
    card.path = at.path;
    memcpy(card.name, o->name, strlen(o->name));
    rc = channel_tell(c->ch, at.peer, CHANNEL_CARD, c->ring, &card);
    if (rc == STRATA_OK)
        c->with->in[c->ring] = c;
    return rc;
}

int strata_channel_open_recv(strata_t *s, int rank, const char *name, size_t size, strata_channel_receiver_t **out)
{
    int rc = out && size <= ST_LANDING_MOST ? channel_check(s, rank, name) : STRATA_ERR_ARG;

    if (rc != STRATA_OK)
        return rc;
    strata_channel_receiver_t *c = calloc(1, sizeof(*c));
    if (!c)
        return STRATA_ERR_NOMEM;
    c->ch = s->channels;
    channel_sweep(c->ch, false);
    struct receiver_opening o = {c, name, size ? (uint32_t)size : STRATA_CHANNEL_SIZE, rank};
    rc = channel_try(c->ch, receiver_open, &o, STRATA_CHANNEL_FOREVER);
    if (rc == STRATA_OK) {
        *out = c;
    } else {
        if (c->landing)
            st_landing_receiver_close(c->landing);
        free(c);
    }
    return rc;
}

struct receiver_call {
    strata_channel_receiver_t *c;
    struct st_landing_view view;
};

static int receiver_peek(void *arg)
{
    struct receiver_call *call = arg;

    return st_landing_receiver_peek(call->c->landing, &call->view);
}

int strata_channel_peek(strata_channel_receiver_t *c, int64_t limit_ms, strata_channel_view_t *view)
{
    if (!c || !view)
        return STRATA_ERR_ARG;
    struct receiver_call call = {.c = c};
    int rc = channel_try(c->ch, receiver_peek, &call, limit_ms);
    if (rc == STRATA_OK)
        *view = channel_view(&call.view);
    return rc;
}

int strata_channel_release(strata_channel_receiver_t *c, const strata_channel_view_t *view)
{
    if (!c || !view)
        return STRATA_ERR_ARG;
    struct st_landing_view v = {.first = view->first,
                                .second = view->second,
                                .first_len = (uint32_t)view->first_len,
                                .second_len = (uint32_t)view->second_len,
                                .end = view->mark};
    st_worker_lock(c->ch->w);
    int rc = st_landing_receiver_release(c->landing, &v);
    st_worker_unlock(c->ch->w);
    return rc;
}

int strata_channel_recv(strata_channel_receiver_t *c, void *buffer, size_t size, size_t *length, int64_t limit_ms)
{
    strata_channel_view_t v;

    if (!c || (!buffer && size))
        return STRATA_ERR_ARG;
    int rc = strata_channel_peek(c, limit_ms, &v);
    if (rc != STRATA_OK)
        return rc;
    size_t all = v.first_len + v.second_len;
    size_t first = v.first_len < size ? v.first_len : size;
    size_t second = v.second_len < size - first ? v.second_len : size - first;
    if (first)
        st_copy_long(buffer, v.first, first);
    if (second)
        st_copy_long((char *)buffer + first, v.second, second);
    if (length)
        *length = all;
    rc = strata_channel_release(c, &v);
    return rc == STRATA_OK && all > size ? STRATA_ERR_TRUNCATE : rc;
}

int strata_channel_close_recv(strata_channel_receiver_t *c)
{
    if (!c)
        return STRATA_ERR_ARG;
    struct channels *ch = c->ch;
    st_worker_lock(ch->w);
    const struct st_landing_in *in = st_landing_receiver_in(c->landing);
    if (!c->bye && (in->rc != STRATA_OK || !in->ended || in->held))
        (void)channel_tell(ch, c->with->peer, CHANNEL_STOP, c->ring, NULL); /* a failed peer needs none */
    st_list_append(&ch->closed, &c->closed);
    st_worker_unlock(ch->w);
    channel_sweep(ch, false);
    return STRATA_OK;
}

/* Takes one that can be freed out of the list, or NULL. */
static strata_channel_receiver_t *receiver_take(struct channels *ch, bool all)
{
    for (struct st_node *n = ch->closed.next; n != &ch->closed; n = n->next) {
        strata_channel_receiver_t *c = ST_CONTAINER(n, strata_channel_receiver_t, closed);
        if (all || c->bye || c->with->peer->failed) {
            st_list_remove(n);
            return c;
        }
    }
    return NULL;
}

void channel_sweep(struct channels *ch, bool all)
{
    for (;;) {
        st_worker_lock(ch->w);
        strata_channel_receiver_t *c = receiver_take(ch, all);
        if (c)
            c->with->in[c->ring] = NULL;
        st_worker_unlock(ch->w);
        if (!c)
            return;
        st_landing_receiver_close(c->landing);
        free(c);
    }
}
