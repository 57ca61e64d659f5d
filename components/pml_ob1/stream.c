/* Streams: messages between the eager limit and the stream limit go as consecutive fragments without waiting for the
 * receiver. The receiver copies each as it arrives, to the user's memory when a receive has matched, else to a buffer
 * of the message's size. Fragments carry number, offset and total, so that any of them may come first. */
#include <strata/sdk/btl_send.h>
#include "control.h"
#include "match.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "send.h"
#include "stream.h"
#include "wire.h"

#define FRAGMENTS_PER_TURN 64

/* ---- sender ---- */

int ob1_stream_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_req *req = ST_CONTAINER(w, struct ob1_req, work);
    struct st_btl_endpoint *ep = st_peer_way(req->peer->shared, 0);
    uint32_t total = (uint32_t)req->data.length, piece = ep->btl->pipeline_send, turn = FRAGMENTS_PER_TURN;
    uint32_t start = req->stream_at;
    int rc = STRATA_OK;

    if (req->failed) {
        ob1_req_try_end(pml, req);
        return STRATA_OK;
    }
    while (req->stream_at < total && turn-- != 0) {
        struct wire_stream_data h = {
            .type = OB1_STREAM_DATA, .stream = req->stream, .offset = req->stream_at, .total = total};
        uint32_t len = total - req->stream_at < piece ? total - req->stream_at : piece;
        rc = st_btl_send_bulk_part(ep, ST_AM_PML, &h, sizeof(h), &req->data, req->stream_at, len);
        if (rc != STRATA_OK)
            break;
        req->stream_at += len;
    }
    if (rc == STRATA_ERR_AGAIN) /* something went out: whoever waits for us is not idle */
        return req->stream_at != start ? ST_WORK_MORE : rc;
    if (rc != STRATA_OK) {
        /* The receiver must not wait for the rest: an empty fragment where it would begin, with the error as its flag.
         * It may arrive before those that were sent earlier, for which the receiver waits. */
        struct wire_stream_data h = {
            .type = OB1_STREAM_DATA, .flags = 1, .stream = req->stream, .offset = req->stream_at, .total = total};
        ob1_control(pml, req->peer, 0, &h, sizeof(h), NULL, 0);
        ob1_req_fail(pml, req, rc);
        return STRATA_OK;
    }
    if (req->stream_at < total)
        return ST_WORK_MORE;
    ob1_send_moved(pml, req, req->data.length);
    return STRATA_OK;
}

static void ob1_stream_work_drop(void *arg, struct st_work *w, int rc)
{
    ob1_req_fail(arg, ST_CONTAINER(w, struct ob1_req, work), rc);
}

const struct st_work_ops ob1_stream_work = {ST_AM_PML, ob1_stream_run, ob1_stream_work_drop};

/* ---- receiver ---- */

/* The list of a peer begins with the streams that are complete and wait for a receive, of which there may be many; then
 * come those under way, then those that are not announced. So no search, from the end, looks at what only waits. */
static struct ob1_stream *ob1_stream_of(struct st_node *n)
{
    return ST_CONTAINER(n, struct ob1_stream, node);
}

static struct ob1_stream *ob1_stream_find(struct ob1_peer *peer, uint32_t number)
{
    for (struct st_node *n = peer->streams.prev; n != &peer->streams; n = n->prev) {
        struct ob1_stream *st = ob1_stream_of(n);
        if (st->number == number)
            return st;
        if (st->announced && st->got >= st->end)
            break;
    }
    return NULL;
}

static struct ob1_stream *ob1_stream_make(struct ob1 *pml, struct ob1_peer *peer, uint32_t number, uint32_t total)
{
    struct ob1_stream *st = st_slab_get(&pml->streams);

    if (!st)
        return NULL;
    *st = (struct ob1_stream){
        .number = number, .total = total, .end = total, .ordered = true, .rank = peer->shared->rank};
    st_list_append(&peer->streams, &st->node);
    return st;
}

static void ob1_stream_drop_buffer(struct ob1 *pml, struct ob1_stream *st)
{
    if (!st->buffer)
        return;
    st_block_put(&pml->payloads, st->buffer, st->total);
    st->buffer = NULL;
    ob1_unexpected_shrank(pml, st->total);
}

static int ob1_stream_need_buffer(struct ob1 *pml, struct ob1_stream *st)
{
    if (st->buffer)
        return STRATA_OK;
    st->buffer = st_block_get(&pml->payloads, st->total);
    if (!st->buffer)
        return STRATA_ERR_NOMEM;
    ob1_unexpected_grew(pml, st->rank, st->total);
    return STRATA_OK;
}

void ob1_stream_drop(struct ob1 *pml, struct ob1_stream *st)
{
    ob1_stream_drop_buffer(pml, st);
    ob1_unlink(&st->node);
    st_slab_put(&pml->streams, st);
}

/* The stream that an OB1_STREAM announces: made, or known from fragments that were faster. NULL: out of memory. */
struct ob1_stream *ob1_stream_expect(struct ob1 *pml, struct ob1_peer *peer, const struct ob1_arrival *a)
{
    struct ob1_stream *st = NULL;
    struct st_node *at = peer->streams.prev;

    for (; at != &peer->streams && !ob1_stream_of(at)->announced; at = at->prev)
        if (ob1_stream_of(at)->number == a->stream)
            st = ob1_stream_of(at);
    if (st && st->total != a->length)
        st = NULL; /* a forged or repeated number: this one is on its own */
    if (!st)
        st = ob1_stream_make(pml, peer, a->stream, (uint32_t)a->length);
    if (!st)
        return NULL;
    st->announced = true;
    if (ST_UNLIKELY(at->next != &st->node)) {
        st_list_remove(&st->node);
        st_list_insert_before(at->next, &st->node);
    }
    return st;
}

static void ob1_stream_finish(struct ob1 *pml, struct ob1_stream *st)
{
    struct ob1_req *req = st->req;
    int rc = st->failed;

    if (rc == STRATA_OK && st->buffer)
        rc = ob1_recv_part(req, 0, st->buffer, st->total);
    if (rc != STRATA_OK) {
        req->head.status.error = rc;
        req->head.status.length = 0;
    }
    ob1_stream_drop(pml, st);
    ob1_req_end(pml, req);
}

/* All has come that comes. */
static void ob1_stream_complete(struct ob1 *pml, struct ob1_stream *st)
{
    struct ob1_peer *peer;

    if (st->req) {
        ob1_stream_finish(pml, st);
    } else if (st->announced && ob1_peer_find(pml, st->rank, &peer) == STRATA_OK) {
        st_list_remove(&st->node);
        st_list_prepend(&peer->streams, &st->node);
    }
}

void ob1_stream_cut(struct ob1_stream *st, int rc)
{
    if (st->failed == STRATA_OK)
        st->failed = rc;
    st->end = st->got;
}

/* True: the stream has ended, and is gone. */
bool ob1_stream_attach(struct ob1 *pml, struct ob1_stream *st, struct ob1_req *req)
{
    struct ob1_peer *peer;

    st->req = req;
    /* Announced before its sender failed, and matched only now: the rest does not come. */
    if (ST_UNLIKELY(pml->head.worker->n_failed != 0) && st->got < st->end &&
        ob1_peer_find(pml, st->rank, &peer) == STRATA_OK && peer->shared->failed)
        ob1_stream_cut(st, peer->shared->failed);
    if (st->got >= st->end) {
        ob1_stream_finish(pml, st);
        return true;
    }
    if (st->buffer && st->ordered) {
        /* What has come is a prefix: hand it over and let the rest go straight to the user. */
        int rc = ob1_recv_part(req, 0, st->buffer, st->got);
        if (rc != STRATA_OK)
            st->failed = rc;
        ob1_stream_drop_buffer(pml, st);
    }
    return false;
}

void ob1_stream_add(struct ob1 *pml, struct ob1_stream *st, uint32_t offset, const void *data, uint32_t len)
{
    int rc;

    if (offset != st->got)
        st->ordered = false;
    if (ST_LIKELY(st->req && !st->buffer)) {
        rc = ob1_recv_part(st->req, offset, data, len);
    } else {
        rc = ob1_stream_need_buffer(pml, st);
        if (rc == STRATA_OK)
            st_copy_long(st->buffer + offset, data, len);
    }
    if (rc != STRATA_OK && st->failed == STRATA_OK)
        st->failed = rc;
    st->got += len;
    if (st->got >= st->end)
        ob1_stream_complete(pml, st);
}

/* The sender could not pack what begins at `offset`: the fragments before it end the stream. */
static void ob1_stream_shorten(struct ob1 *pml, struct ob1_stream *st, uint32_t offset)
{
    if (st->failed == STRATA_OK)
        st->failed = STRATA_ERR_SYSTEM;
    st->end = offset;
    if (st->got >= st->end)
        ob1_stream_complete(pml, st);
}

void ob1_on_stream_data(struct ob1 *pml, const struct st_frag *frag, const union wire_any *any)
{
    const struct wire_stream_data *h = &any->stream_data;
    struct ob1_peer *peer;
    struct ob1_stream *st;

    if (h->total > OB1_STREAM_MAX || h->offset > h->total || frag->len > h->total - h->offset) {
        ob1_protocol_error(pml, frag, "malformed part of a stream");
        return;
    }
    if (ob1_peer_find(pml, frag->rank, &peer) != STRATA_OK)
        return;
    st = ob1_stream_find(peer, h->stream);
    if (!st)
        st = ob1_stream_make(pml, peer, h->stream, h->total);
    if (!st) {
        st_worker_peer_failed(pml->head.worker, frag->rank, STRATA_ERR_NOMEM,
                              "no memory for a message that arrives in parts");
        return;
    }
    if (st->total != h->total || h->offset > st->end || frag->len > st->end - h->offset ||
        (uint64_t)st->got + frag->len > st->end || (h->flags && (frag->len || h->offset < st->got))) {
        ob1_protocol_error(pml, frag, "part of a stream that does not fit it");
        return;
    }
    if (ST_UNLIKELY(h->flags != 0))
        ob1_stream_shorten(pml, st, h->offset);
    else
        ob1_stream_add(pml, st, h->offset, frag->data, frag->len);
}
