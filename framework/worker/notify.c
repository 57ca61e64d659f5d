/* Put with notice: by the transport where it offers that (st_btl_rdma.put_notify); else a put, and when that is done a
 * message to the peer's worker, which hands the notice to its client.
 * The message may find no room: then it is pending work. It goes by the endpoint of the put and by no lane: who redoes
 * a lost one would not know whether the data has arrived. */
#include <string.h>

#include <strata/sdk/notify.h>
#include "framework/worker/lane.h"

#define AM_SHIFT 28

/* Paths to the peer that were lost; without a lane the peer fails with its path. */
static uint64_t notify_paths_lost(const struct st_notify *n)
{
    return n->peer->lane ? n->peer->lane->n_failed : 0;
}

static int notify_send(struct st_notify *n)
{
    return n->ep->btl->ops->send(n->ep, ST_AM_NOTICE, &n->word, sizeof(n->word), NULL, 0);
}

static int notify_run(void *arg, struct st_work *work)
{
    struct st_notify *n = ST_CONTAINER(work, struct st_notify, work);
    /* The endpoint may be another's by now, or lead to a peer that has begun anew: any lost path to it counts. */
    int rc = notify_paths_lost(n) == n->n_lost ? notify_send(n) : STRATA_ERR_PEER;
    (void)arg;
    if (rc == STRATA_ERR_AGAIN)
        return rc;
    n->done(n, rc);
    return STRATA_OK;
}

static void notify_drop(void *arg, struct st_work *work, int rc)
{
    struct st_notify *n = ST_CONTAINER(work, struct st_notify, work);
    (void)arg;
    n->done(n, rc);
}

/* By client: its pending work ends with it. */
static const struct st_work_ops notify_work[] = {[ST_AM_PML] = {ST_AM_PML, notify_run, notify_drop},
                                                 [ST_AM_STREAM] = {ST_AM_STREAM, notify_run, notify_drop},
                                                 [ST_AM_COLL] = {ST_AM_COLL, notify_run, notify_drop},
                                                 [ST_AM_TEST] = {ST_AM_TEST, notify_run, notify_drop}};
_Static_assert(sizeof(notify_work) / sizeof(notify_work[0]) == ST_AM_CLIENTS, "one for each client");

/* The data has arrived. 1: the notice is on its way, too; STRATA_OK: it waits. */
static int notify_tell(struct st_notify *n)
{
    int rc = notify_send(n);
    if (rc == STRATA_OK)
        return 1;
    if (rc != STRATA_ERR_AGAIN)
        return rc;
    st_worker_queue(n->worker, n->peer, ST_WORK_REST, &n->work);
    return STRATA_OK;
}

static void notify_put_done(struct st_btl_op *op, int rc)
{
    struct st_notify *n = ST_CONTAINER(op, struct st_notify, op);
    if (rc == STRATA_OK)
        rc = notify_tell(n);
    if (rc != STRATA_OK)
        n->done(n, rc == 1 ? STRATA_OK : rc);
}

static void notify_native_done(struct st_btl_op *op, int rc)
{
    struct st_notify *n = ST_CONTAINER(op, struct st_notify, op);
    n->done(n, rc);
}

/* By put and message. */
static int notify_in_two(struct st_notify *n, const struct st_notify_put *put)
{
    if (!(n->ep->caps & ST_BTL_PUT))
        return STRATA_ERR_UNSUPPORTED;
    n->op.done = notify_put_done;
    int rc = n->ep->btl->rdma->put(n->ep, put->local, put->remote, put->key, put->len, put->reg, &n->op);
    return rc == 1 ? notify_tell(n) : rc;
}

int st_notify_prepare(struct st_notify *n, struct st_worker *w, struct st_peer *peer, uint8_t path, enum st_am am)
{
    if ((unsigned)am >= ST_AM_CLIENTS || !peer->bml || path >= peer->bml->n_paths)
        return STRATA_ERR_ARG;
    n->worker = w;
    n->peer = peer;
    n->ep = st_peer_path(peer, path);
    n->word = (uint32_t)am << AM_SHIFT;
    n->work = (struct st_work){.ops = &notify_work[am], .path = path};
    return STRATA_OK;
}

int st_notify_start(struct st_notify *n, const struct st_notify_put *put)
{
    const struct st_btl_rdma *rdma = n->ep->btl->rdma;

    if (ST_UNLIKELY(put->notice > ST_NOTICE_MAX))
        return STRATA_ERR_ARG;
    if (ST_UNLIKELY(n->peer->failed))
        return n->peer->failed;
    n->n_lost = notify_paths_lost(n);
    n->word = (n->word & ~ST_NOTICE_MAX) | put->notice;
    if (put->len == 0)
        return notify_tell(n);
    if (ST_UNLIKELY(!rdma->put_notify))
        return notify_in_two(n, put);
    n->op.done = notify_native_done;
    int rc = rdma->put_notify(n->ep, put->local, put->remote, put->key, put->len, put->reg, n->word, &n->op);
    return rc == STRATA_ERR_UNSUPPORTED ? notify_in_two(n, put) : rc;
}

int st_worker_put_notify(struct st_worker *w, struct st_peer *peer, uint8_t path, const struct st_notify_put *put,
                         struct st_notify *n)
{
    int rc = st_notify_prepare(n, w, peer, path, put->am);

    return rc == STRATA_OK ? st_notify_start(n, put) : rc;
}

/* st_deliver_fn of ST_AM_NOTICE. */
void worker_notice_take(void *arg, const struct st_frag *frag)
{
    struct worker *w = arg;
    uint32_t word;
    if (frag->hdr_len != sizeof(word) || frag->len != 0) {
        st_worker_protocol_error(&w->head, "worker", frag, "malformed notice", &w->n_protocol_errors);
        return;
    }
    memcpy(&word, frag->hdr, sizeof(word));
    const struct st_client *c = word >> AM_SHIFT < ST_AM_CLIENTS ? w->clients[word >> AM_SHIFT].row : NULL;
    if (!c && word >> AM_SHIFT < ST_AM_CLIENTS)
        return; /* for a client that has left, or not joined */
    if (c && c->notified)
        c->notified(w->clients[word >> AM_SHIFT].arg, frag->rank, word & ST_NOTICE_MAX);
    else
        st_worker_protocol_error(&w->head, "worker", frag, "a notice for nobody", &w->n_protocol_errors);
}
