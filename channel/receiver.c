/* The receiver's end of a channel. */
#include <stdlib.h>
#include <string.h>

#include "channel/direct.h"
#include "channel/long.h"
#include "channel/slots.h"
#include "framework/base/context.h"

struct receiver_opening {
    strata_channel_receiver_t *c;
    const char *name;
    uint32_t size;
    int rank;
    bool crowded; /* rings that are being closed have the names */
};

/* With the lock held. */
static bool receiver_leaves(const strata_channel_receiver_t *c)
{
    return c->bye || c->with->peer->failed;
}

/* One of the rings that are being closed can be freed. */
static bool receiver_one_leaves(void *arg)
{
    struct channels *ch = arg;
    bool leaves = false;

    st_worker_lock(ch->w);
    for (struct st_node *n = ch->closed.next; n != &ch->closed && !leaves; n = n->next)
        leaves = receiver_leaves(ST_CONTAINER(n, strata_channel_receiver_t, closed));
    st_worker_unlock(ch->w);
    return leaves;
}

static bool receiver_closes(const struct channels *ch, const struct channel_peer *with)
{
    for (const struct st_node *n = ch->closed.next; n != &ch->closed; n = n->next)
        if (ST_CONTAINER(n, strata_channel_receiver_t, closed)->with == with)
            return true;
    return false;
}

/* A name that is free, all in turn: a notice of the name's former ring may still be on its way, by another path than
 * the BYE that freed the name. ST_LANDING_NAMES: none is. */
static uint32_t receiver_free_name(const struct channel_peer *with, uint32_t use)
{
    uint32_t n = with->in.n ? with->in.n : CHANNEL_TABLE_LEAST;

    for (uint32_t i = 0; i < n; i++)
        if (!channel_receiver_of(with, (use + i) % n))
            return (use + i) % n;
    return n;
}

/* With the lock held: makes the ring and offers it. */
static int receiver_open(void *arg)
{
    struct receiver_opening *o = arg;
    strata_channel_receiver_t *c = o->c;
    struct channel_card card = {0};
    int rc = channel_peer_of(c->ch, o->rank, true, &c->with);

    o->crowded = false;
    if (rc != STRATA_OK)
        return rc;
    c->ring = receiver_free_name(c->with, c->ch->next_use);
    o->crowded = c->ring == ST_LANDING_NAMES && receiver_closes(c->ch, c->with);
    if (c->ring == ST_LANDING_NAMES)
        return STRATA_ERR_NOMEM;
    struct st_landing_where at = {.worker = c->ch->w, .peer = c->with->peer, .am = ST_AM_STREAM};
    at.path = st_peer_path_up(at.peer, 0);
    if (at.path == ST_NO_PATH)
        return STRATA_ERR_AGAIN;
    const struct st_btl_endpoint *ep = st_peer_path(at.peer, at.path);
    if (!channel_can_go(ep))
        return STRATA_ERR_UNSUPPORTED;
    card.mappable = ep->btl->rdma->map != NULL;
    at.more = card.mappable ? MAPPED_MORE : 0;
    rc = st_landing_receiver_open(&at, o->size, c->ring, &c->landing, &card.card);
    if (rc == STRATA_ERR_PEER && !at.peer->failed)
        return STRATA_ERR_AGAIN; /* its only path does not work now */
    if (rc != STRATA_OK)
        return rc;
    c->in = st_landing_receiver_in(c->landing);
    if (card.mappable)
        mapped_in_open(&c->mapped, (char *)(uintptr_t)c->in->ring, o->size);
    card.path = c->path = at.path;
    memcpy(card.name, o->name, strlen(o->name));
    c->use = c->ch->next_use++;
    struct channel_head head = {.kind = CHANNEL_CARD, .ring = c->ring, .id = c->use};
    rc = channel_table_set(c->ch, &c->with->in, c->ring, c);
    if (rc != STRATA_OK)
        return rc;
    rc = channel_tell(c->ch, at.peer, &head, &card, sizeof(card));
    if (rc != STRATA_OK)
        (void)channel_table_set(c->ch, &c->with->in, c->ring, NULL);
    return rc;
}

int strata_channel_open_recv(strata_t *s, int rank, const char *name, size_t size, strata_channel_receiver_t **out)
{
    int rc = out && size <= ST_LANDING_MOST ? channel_check(s, rank, name) : STRATA_ERR_ARG;

    if (rc != STRATA_OK)
        return rc;
    strata_channel_receiver_t *c = channel_alloc(s->channels, sizeof(*c));
    if (!c)
        return STRATA_ERR_NOMEM;
    c->ch = s->channels;
    st_list_init(&c->held);
    struct receiver_opening o = {c, name, size ? (uint32_t)size : STRATA_CHANNEL_SIZE, rank, false};
    do {
        if (o.crowded)
            st_worker_wait(c->ch->w, receiver_one_leaves, c->ch);
        channel_sweep(c->ch, false);
        rc = channel_try(c->ch, receiver_open, &o, STRATA_CHANNEL_FOREVER);
    } while (o.crowded);
    if (rc == STRATA_OK) {
        *out = c;
    } else {
        if (c->landing)
            st_landing_receiver_close(c->landing);
        channel_free(c->ch, c, sizeof(*c));
    }
    return rc;
}

static bool receiver_is_quiet(void *arg)
{
    const strata_channel_receiver_t *c = arg;

    st_worker_lock(c->ch->w);
    bool quiet = !c->coming || c->coming->n_gets == 0;
    st_worker_unlock(c->ch->w);
    return quiet;
}

/* Long messages end: no get is in flight when the sender is told to stop. */
static void receiver_drop_long(strata_channel_receiver_t *c)
{
    st_worker_lock(c->ch->w);
    if (c->coming && c->coming->rc == STRATA_ERR_AGAIN)
        c->coming->rc = STRATA_ERR_STATE;
    st_worker_unlock(c->ch->w);
    st_worker_wait(c->ch->w, receiver_is_quiet, c);
    st_worker_lock(c->ch->w);
    if (c->coming)
        channel_in_free(c->coming);
    c->coming = NULL;
    while (!st_list_empty(&c->held)) {
        struct channel_in *in = ST_CONTAINER(c->held.next, struct channel_in, held);
        st_list_remove(&in->held);
        channel_in_free(in);
    }
    st_worker_unlock(c->ch->w);
}

int strata_channel_close_recv(strata_channel_receiver_t *c)
{
    if (!c)
        return STRATA_ERR_ARG;
    struct channels *ch = c->ch;
    receiver_drop_long(c);
    st_worker_lock(ch->w);
    channel_set_leave(c);
    struct channel_head stop = {.kind = CHANNEL_STOP, .ring = c->ring, .id = c->use};
    if (!c->bye && !channel_slots_all_taken(c))
        (void)channel_tell(ch, c->with->peer, &stop, NULL, 0); /* a failed peer needs none */
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
        if (all || receiver_leaves(c)) {
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
            (void)channel_table_set(ch, &c->with->in, c->ring, NULL);
        st_worker_unlock(ch->w);
        if (!c)
            return;
        st_landing_receiver_close(c->landing);
        channel_free(ch, c->awaited, sizeof(*c->awaited));
        channel_free(ch, c, sizeof(*c));
    }
}
