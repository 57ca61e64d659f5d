/* A client of the worker; see client.h. */
#include "support/client.h"

#include <stdlib.h>
#include <string.h>

/* What it keeps of a peer that it has sent to, in st_peer.client. */
struct contact {
    uint32_t sent;    /* messages: the number of the next */
    uint32_t waiting; /* of them not handed to a transport yet */
};

struct client {
    struct st_worker *worker;
    client_take_fn take;
    void *arg;
    struct client_counts counts;
};

/* A message that waits for its path. */
struct waiting {
    struct st_work work;
    struct st_peer *peer;
    uint32_t number, len;
    char data[CLIENT_MOST];
};

/* ---- arrivals ---- */

/* The bytes may be writable by the peer: what is checked is copied first. Here the transport has checked the lengths.
 */
static void client_deliver(void *arg, const struct st_frag *frag)
{
    struct client *c = arg;
    uint32_t number;

    if (frag->hdr_len != sizeof(number))
        return;
    memcpy(&number, frag->hdr, sizeof(number));
    c->take(c->arg, frag->rank, number, frag->data, frag->len);
}

/* ---- sending ---- */

static int client_hand_over(struct st_peer *peer, uint32_t number, const void *data, uint32_t len)
{
    struct st_btl_endpoint *ep = st_peer_way(peer, 0);

    return ep->btl->ops->send(ep, ST_AM_TEST, &number, sizeof(number), data, len);
}

static void client_forget(struct client *c, struct waiting *m)
{
    struct contact *to = m->peer->client[ST_AM_TEST];

    to->waiting--;
    c->counts.waiting--;
    free(m);
}

static int client_run(void *arg, struct st_work *work)
{
    struct client *c = arg;
    struct waiting *m = ST_CONTAINER(work, struct waiting, work);
    int rc = client_hand_over(m->peer, m->number, m->data, m->len);

    if (rc == STRATA_ERR_AGAIN)
        return rc;
    if (rc != STRATA_OK) {
        st_worker_peer_failed(c->worker, m->peer->rank, rc, "a message of the test's client could not be sent");
        c->counts.dropped++;
    }
    client_forget(c, m);
    return STRATA_OK;
}

static void client_drop(void *arg, struct st_work *work, int rc)
{
    struct client *c = arg;

    (void)rc;
    c->counts.dropped++;
    client_forget(c, ST_CONTAINER(work, struct waiting, work));
}

static const struct st_work_ops client_work = {ST_AM_TEST, client_run, client_drop};

static int client_queue(struct client *c, struct st_peer *peer, uint32_t number, const void *data, uint32_t len)
{
    struct contact *to = peer->client[ST_AM_TEST];
    struct waiting *m = malloc(sizeof(*m));

    if (!m)
        return STRATA_ERR_NOMEM;
    *m = (struct waiting){.work.ops = &client_work, .peer = peer, .number = number, .len = len};
    memcpy(m->data, data, len);
    to->waiting++;
    c->counts.waiting++;
    c->counts.waited++;
    st_worker_queue(c->worker, peer, ST_WORK_REST, &m->work);
    return STRATA_OK;
}

/* The peer, connected, and what is kept of it. */
static int client_contact(struct client *c, int rank, struct st_peer **peer)
{
    int rc = st_worker_peer(c->worker, rank, peer);

    if (rc == STRATA_OK)
        rc = st_worker_connect(c->worker, *peer);
    if (rc != STRATA_OK || (*peer)->client[ST_AM_TEST])
        return rc;
    (*peer)->client[ST_AM_TEST] = calloc(1, sizeof(struct contact));
    return (*peer)->client[ST_AM_TEST] ? STRATA_OK : STRATA_ERR_NOMEM;
}

static int client_send_locked(struct client *c, int rank, const void *data, uint32_t len)
{
    struct st_peer *peer;
    struct contact *to;
    int rc = client_contact(c, rank, &peer);

    if (rc != STRATA_OK)
        return rc;
    to = peer->client[ST_AM_TEST];
    rc = to->waiting ? STRATA_ERR_AGAIN : client_hand_over(peer, to->sent, data, len);
    if (rc == STRATA_ERR_AGAIN)
        rc = client_queue(c, peer, to->sent, data, len);
    if (rc == STRATA_OK)
        to->sent++;
    return rc;
}

int client_send(struct client *c, int rank, const void *data, uint32_t len)
{
    if (len > CLIENT_MOST)
        return STRATA_ERR_ARG;
    st_worker_lock(c->worker);
    int rc = client_send_locked(c, rank, data, len);
    st_worker_unlock(c->worker);
    return rc;
}

/* ---- the row; what waits is pending work, for which st_worker_drain waits without being told ---- */

static void client_peer_failed(void *arg, struct st_peer *peer)
{
    struct client *c = arg;

    (void)peer;
    c->counts.failed++;
}

static const struct st_client client_row = {
    .am = ST_AM_TEST, .deliver = client_deliver, .peer_failed = client_peer_failed};

struct client *client_open(struct st_worker *worker, client_take_fn take, void *arg)
{
    struct client *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    *c = (struct client){.worker = worker, .take = take, .arg = arg};
    if (st_worker_join(worker, &client_row, c) != STRATA_OK) {
        free(c);
        return NULL;
    }
    return c;
}

void client_close(struct client *c)
{
    struct st_worker *w = c->worker;

    st_worker_leave(w, &client_row);
    st_worker_lock(w);
    for (int64_t i = 0; (i = st_worker_peer_next(w, i)) >= 0; i++) {
        struct st_peer *peer = st_worker_peer_known(w, (int)i);
        free(peer->client[ST_AM_TEST]);
        peer->client[ST_AM_TEST] = NULL;
    }
    st_worker_unlock(w);
    free(c);
}

struct client_counts client_counts(struct client *c)
{
    st_worker_lock(c->worker);
    struct client_counts now = c->counts;
    st_worker_unlock(c->worker);
    return now;
}
