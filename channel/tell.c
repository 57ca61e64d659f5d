/* Messages between the ends of channels, and the records of peers that they go to. */
#include <stdlib.h>
#include <string.h>

#include "channel/channel.h"

/* ---- messages between the ends ---- */

struct channel_message {
    struct st_work work;
    struct st_peer *peer;
    struct channel_head head;
    char data[sizeof(struct channel_card)];
    uint32_t len;
    bool waits; /* in memory of its own, as pending work */
};

static int channel_hand_over(struct channel_message *m)
{
    struct st_btl_endpoint *ep = st_peer_way(m->peer, 0);

    return ep->btl->ops->send(ep, ST_AM_STREAM, &m->head, sizeof(m->head), m->data, m->len);
}

static int channel_run(void *arg, struct st_work *work)
{
    struct channels *ch = arg;
    struct channel_message *m = ST_CONTAINER(work, struct channel_message, work);
    int rc = channel_hand_over(m);

    if (rc == STRATA_ERR_AGAIN)
        return rc;
    if (rc != STRATA_OK)
        st_worker_peer_failed(ch->w, m->peer->rank, rc, "a message about a channel could not be sent");
    if (m->waits)
        free(m);
    return STRATA_OK;
}

static void channel_drop(void *arg, struct st_work *work, int rc)
{
    (void)arg, (void)rc;
    free(ST_CONTAINER(work, struct channel_message, work));
}

static const struct st_work_ops channel_work = {ST_AM_STREAM, channel_run, channel_drop};

int channel_tell(struct channels *ch, struct st_peer *peer, const struct channel_head *head, const void *data,
                 uint32_t len)
{
    struct channel_message now = {.work.ops = &channel_work, .peer = peer, .head = *head, .len = len}, *m;

    if (peer->failed)
        return peer->failed;
    if (len)
        memcpy(now.data, data, len);
    if (channel_run(ch, &now.work) != STRATA_ERR_AGAIN)
        return STRATA_OK;
    m = malloc(sizeof(*m));
    if (!m)
        return STRATA_ERR_NOMEM;
    *m = now;
    m->waits = true;
    st_worker_queue(ch->w, peer, ST_WORK_CONTROL, &m->work);
    return STRATA_OK;
}

/* ---- peers ---- */

int channel_peer_of(struct channels *ch, int rank, bool connect, struct channel_peer **out)
{
    struct st_peer *peer;
    int rc = st_worker_peer(ch->w, rank, &peer);

    if (rc == STRATA_OK && connect)
        rc = st_worker_connect(ch->w, peer);
    if (rc != STRATA_OK)
        return rc;
    if (!peer->client[ST_AM_STREAM]) {
        struct channel_peer *with = channel_alloc(ch, sizeof(*with));
        if (!with)
            return STRATA_ERR_NOMEM;
        with->peer = peer;
        peer->client[ST_AM_STREAM] = with;
    }
    *out = peer->client[ST_AM_STREAM];
    return STRATA_OK;
}

int channel_check(strata_t *s, int rank, const char *name)
{
    if (!s || !name || !*name || strlen(name) > STRATA_CHANNEL_NAME_MAX)
        return STRATA_ERR_ARG;
    return rank < 0 || rank >= strata_size(s) ? STRATA_ERR_RANK : STRATA_OK;
}

void channel_log(struct channels *ch, const struct st_peer *peer, const char *wrong)
{
    if (atomic_fetch_add_explicit(&ch->n_log, 1, memory_order_relaxed) >= CHANNEL_LOGGED)
        return;
    st_log(ch->w->context, ST_LOG_WARN, "channel", "a channel from rank %d is broken: %s", peer->rank, wrong);
}
