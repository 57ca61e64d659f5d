/* Sends that cannot leave at once: first contact, back-pressure, long messages, synchronous and buffered mode. */
#include <stdlib.h>
#include <strata/sdk/btl_send.h>
#include "comm.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "send.h"
#include "stream.h"
#include "wire.h"

/* ---- messages whose data the transport takes from where it is ---- */

static bool ob1_send_may_lend(const struct ob1_peer *peer, const strata_data_t *data)
{
    return data->kind == STRATA_CONTIGUOUS && data->length >= peer->zcopy_min;
}

/* The connection is lost. While the rest of a stream is queued, the queue ends the request, which is linked in it. */
static ST_COLD void ob1_send_lent_failed(struct ob1 *pml, struct ob1_req *req, int rc)
{
    bool queued = req->protocol == OB1_P_STREAM && !req->failed && req->stream_at < req->data.length;

    if (!queued) {
        ob1_req_fail(pml, req, rc);
        return;
    }
    req->tasks++;
    ob1_req_fail(pml, req, rc);
    req->tasks--;
}

static void ob1_send_given_back(struct st_btl_op *op, int rc)
{
    struct ob1_req *req = ST_CONTAINER(op, struct ob1_req, lent);

    req->tasks--;
    if (ST_UNLIKELY(rc != STRATA_OK))
        ob1_send_lent_failed(req->pml, req, rc);
    else
        ob1_req_try_end(req->pml, req);
}

/* The first fragment of a message that has a request. */
static int ob1_send_first(struct ob1 *pml, struct ob1_req *req, struct st_btl_endpoint *ep, const void *hdr,
                          uint32_t hdr_len, uint32_t len)
{
    int rc;

    if (!ob1_send_may_lend(req->peer, &req->data))
        return st_btl_send_part(ep, ST_AM_PML, hdr, hdr_len, &req->data, 0, len);
    req->lent.done = ob1_send_given_back;
    req->pml = pml;
    rc = ep->btl->hints->send_zcopy(ep, ST_AM_PML, hdr, hdr_len, req->data.u.buffer, len, &req->lent);
    if (rc == STRATA_OK)
        req->tasks++;
    return rc == 1 ? STRATA_OK : rc;
}

static struct wire_match ob1_send_header(const struct ob1_req *req, enum ob1_type type)
{
    return (struct wire_match){.type = (uint8_t)type,
                               .seq = req->to ? (uint16_t)req->to->send_seq : req->seq,
                               .context = req->context,
                               .tag = req->tag,
                               .src = req->src};
}

static int ob1_send_eager(struct ob1 *pml, struct ob1_req *req, struct st_btl_endpoint *ep)
{
    struct wire_match h = ob1_send_header(req, OB1_EAGER);

    return ob1_send_first(pml, req, ep, &h, sizeof(h), (uint32_t)req->data.length);
}

static int ob1_send_eager_sync(struct ob1 *pml, struct ob1_req *req, struct st_btl_endpoint *ep)
{
    struct wire_sync h = {ob1_send_header(req, OB1_EAGER_SYNC), 0};
    int rc = ob1_req_name(pml, req, OB1_ID_SEND);

    h.id = req->id;
    return rc != STRATA_OK ? rc
                           : st_btl_send_part(ep, ST_AM_PML, &h, sizeof(h), &req->data, 0, (uint32_t)req->data.length);
}

static int ob1_send_stream(struct ob1 *pml, struct ob1_req *req, struct st_btl_endpoint *ep)
{
    uint32_t len = ep->btl->pipeline_send;
    struct wire_stream h = {ob1_send_header(req, OB1_STREAM), (uint32_t)req->data.length, req->peer->next_stream};
    int rc;

    if (len > req->data.length)
        len = (uint32_t)req->data.length;
    rc = ob1_send_first(pml, req, ep, &h, sizeof(h), len);
    if (rc == STRATA_OK) {
        req->stream = req->peer->next_stream++;
        req->stream_at = len;
    }
    return rc;
}

static int ob1_send_rndv(struct ob1 *pml, struct ob1_req *req, struct st_btl_endpoint *ep)
{
    static const uint8_t flags[] = {
        [OB1_WINDOW] = 0, [OB1_ALONE] = OB1_F_ALONE, [OB1_CROSSES] = OB1_F_CROSSES, [OB1_LATE] = OB1_F_LATE};
    struct wire_rndv h = {.match = ob1_send_header(req, OB1_RNDV), .length = req->data.length};
    const void *key = NULL;
    uint8_t path = st_peer_path_up(req->peer->shared, 0);
    struct st_btl *btl = st_peer_path(req->peer->shared, path)->btl; /* that a key would be for */
    int rc = ob1_req_name(pml, req, OB1_ID_SEND);

    if (rc != STRATA_OK)
        return rc;
    h.id = req->id;
    h.match.flags |= flags[req->flow];
    if (req->protocol != OB1_P_RNDV) {
        h.address = (uint64_t)(uintptr_t)req->data.u.buffer;
        h.match.flags |= OB1_F_EXPOSED;
    }
    if (req->protocol == OB1_P_RNDV_KEY && !req->reg) {
        struct st_btl_reg *reg = malloc(sizeof(*reg));
        /* Without a registration the receiver asks for fragments instead. */
        if (reg && btl->rdma->reg(btl, req->data.u.buffer, req->data.length, ST_BTL_SOURCE, reg) == STRATA_OK) {
            req->reg = reg;
            req->reg_btl = btl;
            req->head.end_bits |= OB1_END_REG;
        } else {
            free(reg);
        }
    }
    if (req->reg && req->reg_btl == btl) {
        h.match.flags |= OB1_F_KEY;
        key = req->reg->key;
    }
    ep = st_peer_way(req->peer->shared, path);
    return ep->btl->ops->send(ep, ST_AM_PML, &h, sizeof(h), key, key ? ST_BTL_KEY_MAX : 0);
}

/* The context goes away while messages that nobody waits for (buffered, or freed) are still queued: they get their
 * sequence numbers now, nothing will come after them. */
void ob1_send_orphan(struct ob1_comm *c)
{
    for (int64_t r = 0; (r = st_rank_table_next(&c->peers, (uint32_t)r)) >= 0; r++) {
        const struct ob1_cpeer *member = st_rank_table_get(&c->peers, (uint32_t)r);
        for (struct st_node *n = member->peer->first.next; n != &member->peer->first; n = n->next) {
            struct ob1_req *req = ST_CONTAINER(n, struct ob1_req, work.node);
            if (req->head.comm != &c->head || !req->to)
                continue;
            req->seq = (uint16_t)req->to->send_seq++;
            req->to->bytes_sent += req->data.length;
            req->to = NULL;
        }
    }
}

typedef int (*first_fn)(struct ob1 *pml, struct ob1_req *req, struct st_btl_endpoint *ep);
static const first_fn first[OB1_P_COUNT] = {
    [OB1_P_EAGER] = ob1_send_eager, [OB1_P_EAGER_SYNC] = ob1_send_eager_sync, [OB1_P_STREAM] = ob1_send_stream,
    [OB1_P_RNDV] = ob1_send_rndv,   [OB1_P_RNDV_EXPOSED] = ob1_send_rndv,     [OB1_P_RNDV_KEY] = ob1_send_rndv,
};

/* Sends a message's first fragment; this is when it gets its sequence number. What has not left has no name that a peer
 * could answer: it is linked in a queue. */
int ob1_first_run(struct ob1 *pml, struct ob1_req *req)
{
    int rc = req->failed ? STRATA_ERR_PEER : first[req->protocol](pml, req, st_peer_way(req->peer->shared, 0));

    if (rc == STRATA_ERR_AGAIN) {
        if (req->id)
            ob1_req_unname(pml, req);
        return rc;
    }
    if (rc != STRATA_OK) {
        if (rc == STRATA_ERR_PEER)
            st_worker_peer_failed(pml->head.worker, req->peer->shared->rank, rc, "a message could not be sent");
        ob1_req_fail(pml, req, rc);
        return STRATA_OK;
    }
    if (ST_LIKELY(req->to != NULL)) {
        req->to->send_seq++;
        req->to->bytes_sent += req->data.length;
    }
    pml->by_protocol[req->protocol]++;
    if (req->protocol == OB1_P_EAGER) {
        ob1_send_moved(pml, req, req->data.length);
    } else if (req->protocol == OB1_P_STREAM) {
        req->work.ops = &ob1_stream_work;
        rc = ob1_stream_run(pml, &req->work);
        if (rc != STRATA_OK)
            st_worker_queue(pml->head.worker, req->peer->shared, ST_WORK_REST, &req->work);
    }
    return STRATA_OK;
}

/* Starts a request whose data, rank, tag and mode are set; the lock is held. On STRATA_OK it is complete or under way;
 * on error nothing was started. `refused`: the transport has just said that it has no room; *way: of the message, NULL
 * or OB1_P_COUNT: that is found out here. A copy in the attached buffer is waited for: there may be no room for more.
 */
int ob1_send_start(struct ob1 *pml, struct ob1_req *req, bool refused, const struct ob1_way *way)
{
    struct ob1_comm *c = (struct ob1_comm *)req->head.comm;
    struct ob1_way found = way ? *way : OB1_WAY_UNKNOWN(req->head.end_bits & OB1_END_BUFFERED);
    int rc = ob1_cpeer_find(c, req->rank, &req->to);

    if (rc == STRATA_OK)
        rc = st_worker_connect(pml->head.worker, req->to->peer->shared);
    if (rc != STRATA_OK)
        return rc;
    req->peer = req->to->peer;
    req->context = c->head.id;
    req->src = c->head.rank;
    req->id = 0;
    req->done = 0;
    req->tasks = 0;
    req->failed = false;
    req->reg = NULL;
    ob1_status(req, c->head.rank, req->tag, STRATA_OK, req->data.length, req->data.length);
    if (found.protocol == OB1_P_COUNT)
        found = ob1_send_way(pml, req->to, &req->data, (strata_mode_t)req->mode, found.waits);
    req->flow = found.flow;
    req->protocol = found.protocol;
    req->heard = false;
    if (req->protocol >= OB1_P_STREAM) {
        req->head.end_bits |= OB1_END_LONG;
        req->peer->flow.long_sends++;
    }
    req->work = (struct st_work){.path = 0};
    if (refused || !st_list_empty(&req->peer->first) || ob1_holds(req) || ob1_first_run(pml, req) == STRATA_ERR_AGAIN)
        ob1_first_queue(pml, req);
    return STRATA_OK;
}

/* Buffered mode: what cannot leave at once goes on from a copy that nobody waits for. */
static int ob1_send_buffered(struct ob1 *pml, strata_comm_t *comm, const strata_data_t *data, int dst, int tag,
                             bool refused)
{
    struct ob1_req *req;
    void *block, *copy;
    int rc;

    /* A full buffer may hold messages that are done with but for the news of it. */
    while ((rc = st_pml_buffer_copy(pml->head.context, data, &block, &copy)) == STRATA_ERR_BUFFER && pml->detached &&
           st_worker_poll(pml->head.worker))
        ;
    if (rc != STRATA_OK)
        return rc;
    req = ob1_req_make(pml, OB1_SEND, comm, NULL);
    if (!req) {
        st_pml_buffer_put(pml->head.context, block);
        return STRATA_ERR_NOMEM;
    }
    ob1_data_contiguous(&req->data, copy, data->length);
    req->rank = dst;
    req->tag = tag;
    req->mode = STRATA_STANDARD;
    req->block = block;
    req->head.flags |= ST_REQ_FREED;
    req->head.end_bits = OB1_END_FREED | OB1_END_BUFFERED;
    pml->detached++;
    rc = ob1_send_start(pml, req, refused, NULL);
    if (rc != STRATA_OK)
        ob1_req_end(pml, req);
    return rc;
}

/* One fragment, if nothing is in its way and it needs no request; else STRATA_ERR_AGAIN. *refused: the transport has no
 * room, now or in an earlier try. *way, unless NULL, is found out when it counts. */
static int ob1_send_try(struct ob1 *pml, struct ob1_comm *c, const strata_data_t *data, int dst, int tag,
                        strata_mode_t mode, bool *refused, struct ob1_way *way)
{
    union wire_match_words h;
    struct ob1_cpeer *to;
    int rc;

    if (*refused || mode == STRATA_SYNCHRONOUS)
        return STRATA_ERR_AGAIN;
    rc = ob1_cpeer_find(c, dst, &to);
    if (rc == STRATA_OK)
        rc = st_worker_connect(pml->head.worker, to->peer->shared);
    if (rc != STRATA_OK)
        return rc;
    if (way && (*way = ob1_send_way(pml, to, data, mode, way->waits)).flow != OB1_WINDOW)
        return STRATA_ERR_AGAIN;
    if (!st_list_empty(&to->peer->first) || data->length > to->peer->eager_limit)
        return STRATA_ERR_AGAIN;
    ob1_match_words(&h, OB1_EAGER, (uint16_t)to->send_seq, c->head.id, tag, c->head.rank);
    rc = st_btl_send_part(st_peer_way(to->peer->shared, 0), ST_AM_PML, &h, sizeof(h), data, 0, (uint32_t)data->length);
    if (rc == STRATA_OK) {
        to->send_seq++;
        to->bytes_sent += data->length;
    }
    *refused = rc == STRATA_ERR_AGAIN;
    return rc;
}

/* Starts a request of its own. 1: it is complete already and was given back. */
static int ob1_isend_request(struct ob1 *pml, strata_comm_t *comm, const struct st_pml_send *a,
                             const strata_data_t *data, bool refused, const struct ob1_way *way, struct ob1_req **out)
{
    struct ob1_req *req = ob1_req_make(pml, OB1_SEND, comm, a->storage);
    int rc;

    if (!req)
        return STRATA_ERR_NOMEM;
    req->data = *data;
    req->rank = a->dst;
    req->tag = a->tag;
    req->mode = (uint8_t)a->mode;
    rc = ob1_send_start(pml, req, refused, way);
    if (rc == STRATA_OK && !ob1_req_done(req)) {
        /* Only now: what completes inside this call is reported by its return, not by the callback. */
        req->head.fn = a->fn;
        req->head.arg = a->arg;
        if (a->fn)
            req->head.end_bits |= OB1_END_CALLBACK;
        *out = req;
        return STRATA_OK;
    }
    if (rc == STRATA_OK)
        rc = req->head.status.error == STRATA_OK ? 1 : req->head.status.error;
    if (!(req->head.flags & ST_REQ_FOREIGN))
        st_slab_put(&pml->requests, req);
    return rc;
}

/* Without a request if that can be, else from a copy that nobody waits for, or by a request of its own where there is
 * room for one. 1: complete, nothing was kept; STRATA_OK: *made is under way. */
static int ob1_send_any(struct ob1 *pml, strata_comm_t *comm, const struct st_pml_send *a, const strata_data_t *data,
                        bool refused, struct ob1_way *way, struct ob1_req **made)
{
    int rc = ob1_send_try(pml, (struct ob1_comm *)comm, data, a->dst, a->tag, a->mode, &refused, way);

    if (rc == STRATA_ERR_AGAIN && a->mode == STRATA_BUFFERED)
        rc = ob1_send_buffered(pml, comm, data, a->dst, a->tag, refused);
    else if (rc == STRATA_ERR_AGAIN && made)
        return ob1_isend_request(pml, comm, a, data, refused, way, made);
    return rc == STRATA_OK ? 1 : rc;
}

int ob1_send_buffered_start(struct ob1 *pml, struct ob1_req *req)
{
    const struct st_pml_send a = {.dst = req->rank, .tag = req->tag, .mode = STRATA_BUFFERED};
    int rc = ob1_send_any(pml, req->head.comm, &a, &req->data, false, NULL, NULL);

    if (rc != 1)
        return rc;
    ob1_status(req, req->head.comm->rank, req->tag, STRATA_OK, req->data.length, req->data.length);
    ob1_req_end(pml, req);
    return STRATA_OK;
}

int ob1_send_slow(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode, bool refused)
{
    struct ob1 *pml = ob1_of(comm);
    struct ob1_req storage, *req;
    struct st_pml_send a = {.dst = dst, .tag = tag, .mode = mode, .storage = &storage};
    struct ob1_way way = OB1_WAY_UNKNOWN(true);
    strata_data_t data;
    int rc;

    ob1_data_contiguous(&data, buf, len);
    ob1_lock(pml);
    rc = ob1_send_any(pml, comm, &a, &data, refused, &way, &req);
    ob1_leave(pml);
    if (rc != STRATA_OK)
        return rc == 1 ? STRATA_OK : rc;
    if (ob1_wait_new(pml, req) > pml->head.worker->spin && req->flow == OB1_ALONE) {
        ob1_lock(pml);
        req->peer->flow.late = OB1_LATE_FOR;
        ob1_unlock(pml);
    }
    return req->head.status.error;
}

/* Whether a message that can have a request should have one: it is lent, or waits for others to go along with. Then it
 * is not tried without. */
static bool ob1_send_wants_request(const struct ob1_comm *c, const struct st_pml_send *a, const strata_data_t *data)
{
    const struct ob1_cpeer *p = st_rank_table_get(&c->peers, (uint32_t)a->dst);

    return p && p->peer->shared->bml && (a->mode == STRATA_STANDARD || a->mode == STRATA_READY) &&
           (ob1_send_may_lend(p->peer, data) || ob1_keeps_back(p->peer, st_peer_way(p->peer->shared, 0), data->length));
}

int ob1_isend_slow(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req, bool refused)
{
    struct ob1 *pml = ob1_of(comm);
    bool may_wait = req || a->storage;
    struct ob1_req *made = NULL, **room = may_wait ? &made : NULL;
    struct ob1_way way = OB1_WAY_UNKNOWN(false);
    strata_data_t data;
    int rc;

    if (a->data)
        data = *a->data;
    else
        ob1_data_contiguous(&data, a->buf, a->len);
    ob1_lock(pml);
    /* A message of one fragment that nobody waits for is announced only where times say that it pays. */
    if (may_wait && ob1_send_wants_request((struct ob1_comm *)comm, a, &data))
        rc = ob1_isend_request(pml, comm, a, &data, refused, NULL, room);
    else
        rc = ob1_send_any(pml, comm, a, &data, refused, pml->tunes && may_wait ? &way : NULL, room);
    if (req && rc == 1) {
        *req = &pml->done;
        rc = STRATA_OK;
    } else if (req && rc == STRATA_OK) {
        *req = &made->head;
    }
    ob1_leave(pml);
    return rc;
}
