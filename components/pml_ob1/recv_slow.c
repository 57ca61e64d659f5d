/* What arrives and is not the hot case: first of its sender, out of turn, unexpected, truncated, of another type. */
#include "comm.h"
#include "control.h"
#include "match.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "recv.h"
#include "request.h"
#include "revoke.h"
#include "rndv.h"
#include "stream.h"
#include "wire.h"

static ST_COLD void ob1_out_of_memory(struct ob1 *pml, int rank)
{
    st_worker_peer_failed(pml->head.worker, rank, STRATA_ERR_NOMEM, "no memory to keep a message that has arrived");
}

void ob1_finish_eager(struct ob1 *pml, struct ob1_req *req, const void *data, size_t len, int src, int tag)
{
    size_t n = len < req->data.length ? len : req->data.length;
    int rc = n ? st_data_scatter(&req->data, 0, data, n) : STRATA_OK;

    if (rc == STRATA_OK && n < len)
        rc = STRATA_ERR_TRUNCATE;
    ob1_status(req, src, tag, rc, n, len);
    ob1_req_end(pml, req);
}

static void ob1_recv_eager(struct ob1 *pml, struct ob1_req *req, const struct ob1_arrival *a, int src)
{
    if (ST_UNLIKELY(ob1_is_lost(a))) {
        ob1_status(req, src, a->tag, STRATA_ERR_NOMEM, 0, a->length);
        ob1_req_end(pml, req);
        return;
    }
    ob1_finish_eager(pml, req, a->data, a->len, src, a->tag);
}

/* A message in its turn has a receive. */
void ob1_recv_begin(struct ob1 *pml, struct ob1_req *req, struct ob1_cpeer *p, const struct ob1_arrival *a,
                    struct ob1_stream *stream)
{
    req->matched = true;
    req->peer = p->peer;
    req->id = 0;
    req->done = 0;
    req->expect = a->length < req->data.length ? a->length : req->data.length;
    req->tasks = 0;
    req->failed = false;
    ob1_status(req, p->rank, a->tag, a->length > req->expect ? STRATA_ERR_TRUNCATE : STRATA_OK, req->expect, a->length);
    switch (a->type) {
    case OB1_EAGER_SYNC:
        ob1_control_fin(pml, p->peer, 0, OB1_ACK, a->id, a->length, STRATA_OK);
        ob1_recv_eager(pml, req, a, p->rank);
        break;
    case OB1_EAGER:
        ob1_recv_eager(pml, req, a, p->rank);
        break;
    case OB1_STREAM:
        /* It may end at once, by an error that overtook this; without bytes they are in the stream already. */
        if (!ob1_stream_attach(pml, stream, req) && a->len)
            ob1_stream_add(pml, stream, 0, a->data, a->len);
        break;
    default:
        ob1_rndv_begin(pml, req, a);
    }
}

void ob1_recv_begin_msg(struct ob1 *pml, struct ob1_req *req, struct ob1_msg *msg)
{
    struct ob1_stream *stream = msg->stream;

    msg->stream = NULL;
    if (msg->a.type == OB1_RNDV)
        ob1_msg_taken(pml, msg);
    ob1_recv_begin(pml, req, msg->from, &msg->a, stream);
    ob1_msg_free(pml, msg);
}

void ob1_recv_withdraw(struct ob1 *pml, struct ob1_posted *posted, int rc)
{
    struct ob1_req *req = ST_CONTAINER(posted, struct ob1_req, posted);

    ob1_match_cancel(&((struct ob1_comm *)req->head.comm)->match, posted);
    ob1_status(req, req->rank, req->tag, rc, 0, 0);
    ob1_req_end(pml, req);
}

/* Keeps a message without a receive; NULL: there was no memory for it. */
static void ob1_keep(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p, struct ob1_msg *msg)
{
    if (msg && ST_UNLIKELY(msg->a.tag < c->revoked)) {
        ob1_discard_msg(pml, p->peer, msg);
        return;
    }
    if (msg) {
        msg->head.comm = &c->head;
        msg->from = p;
        if (msg->a.type == OB1_RNDV)
            ob1_msg_waits(pml, msg);
        if (ob1_match_store(&c->match, &msg->unexp, p->rank, msg->a.tag) == STRATA_OK)
            return;
    }
    ob1_out_of_memory(pml, p->job_rank);
}

void ob1_deliver_unexpected(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p, const struct st_frag *frag)
{
    struct ob1_arrival a;

    wire_parse(frag, &a); /* has been checked: an eager header cannot fail */
    ob1_keep(pml, c, p, ob1_msg_make(pml, &a));
    if (c->n_held)
        ob1_deliver_held(pml, c, p);
}

/* A message whose turn has come. `msg` is where it was kept till now; NULL: it is only in its fragment. */
static void ob1_take_turn(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p, const struct ob1_arrival *a,
                          struct ob1_msg *msg)
{
    struct ob1_arrival kept = *a;
    struct ob1_stream *stream = NULL;
    struct ob1_posted *posted;

    p->bytes_received += a->length;
    if (a->type == OB1_STREAM && (stream = ob1_stream_expect(pml, p->peer, a)) == NULL) {
        ob1_out_of_memory(pml, p->job_rank);
        if (msg)
            ob1_msg_free(pml, msg);
        return;
    }
    posted = ob1_match_arrive(&c->match, p->rank, a->tag);
    if (posted) {
        ob1_recv_begin(pml, ST_CONTAINER(posted, struct ob1_req, posted), p, a, stream);
        if (msg)
            ob1_msg_free(pml, msg);
        return;
    }
    if (stream) { /* it keeps what came along */
        ob1_stream_add(pml, stream, 0, a->data, a->len);
        kept.len = 0;
    }
    if (!msg)
        msg = ob1_msg_make(pml, &kept);
    else if (stream)
        ob1_msg_drop_payload(pml, msg);
    if (msg)
        msg->stream = stream;
    ob1_keep(pml, c, p, msg);
}

void ob1_deliver_held(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p)
{
    struct ob1_msg *msg;

    while ((msg = ob1_held_next(c, p)) != NULL)
        ob1_take_turn(pml, c, p, &msg->a, msg);
}

/* The sender's place in the context, checked against who the transport says it is. */
static struct ob1_cpeer *ob1_sender_of(struct ob1_comm *c, const struct ob1_arrival *a)
{
    struct ob1_cpeer *p;

    if (a->src >= c->head.size || (c->head.world ? c->head.world[a->src] : a->src) != a->job_rank)
        return NULL;
    return ob1_cpeer_find(c, a->src, &p) == STRATA_OK ? p : NULL;
}

/* Takes a message, kept in `msg` or only in its fragment, in its turn. STRATA_ERR_PROTOCOL: it is stale; it is gone. */
static int ob1_arrive(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p, const struct ob1_arrival *a,
                      struct ob1_msg *msg)
{
    int rc;

    if (a->seq == (uint16_t)p->recv_seq) {
        p->recv_seq++;
        ob1_take_turn(pml, c, p, a, msg);
        if (c->n_held)
            ob1_deliver_held(pml, c, p);
        return STRATA_OK;
    }
    if (!msg)
        msg = ob1_msg_make(pml, a);
    rc = msg ? ob1_held_insert(c, p, a->seq, msg) : STRATA_ERR_NOMEM;
    if (rc == STRATA_ERR_NOMEM)
        ob1_out_of_memory(pml, p->job_rank);
    if (rc != STRATA_OK && msg)
        ob1_msg_free(pml, msg);
    return rc;
}

void ob1_deliver_msg(struct ob1 *pml, struct ob1_comm *c, struct ob1_msg *msg)
{
    struct ob1_cpeer *p = ob1_sender_of(c, &msg->a);

    if (!p)
        ob1_msg_free(pml, msg);
    if (!p || ob1_arrive(pml, c, p, &msg->a, msg) == STRATA_ERR_PROTOCOL)
        pml->n_protocol_errors++;
}

static void ob1_hold_early(struct ob1 *pml, const struct ob1_arrival *a)
{
    struct ob1_msg *msg = ob1_msg_make(pml, a);

    if (!msg) {
        ob1_out_of_memory(pml, a->job_rank);
        return;
    }
    *pml->early_last = msg;
    pml->early_last = &msg->next;
    pml->n_early++;
}

static void ob1_matched_type(struct ob1 *pml, const struct st_frag *frag)
{
    struct ob1_arrival a;
    struct ob1_comm *c;
    struct ob1_cpeer *p;

    if (wire_parse(frag, &a) != STRATA_OK) {
        ob1_protocol_error(pml, frag, "malformed header");
        return;
    }
    c = ob1_comm_find(pml, a.context);
    if (!c) {
        if (pml->n_revoked == 0 || !ob1_discard_late(pml, &a))
            ob1_hold_early(pml, &a);
        return;
    }
    p = ob1_sender_of(c, &a);
    if (!p) {
        ob1_protocol_error(pml, frag, "not a member of the context it names");
        return;
    }
    if (!p->peer->heard_by && frag->btl) /* a lane does not say by which path a diverted message came */
        p->peer->heard_by = frag->btl->component;
    if (ob1_arrive(pml, c, p, &a, NULL) == STRATA_ERR_PROTOCOL)
        ob1_protocol_error(pml, frag, "stale sequence number");
}

void ob1_deliver_slow(struct ob1 *pml, const struct st_frag *frag)
{
    static const struct {
        void (*fn)(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);
        size_t hdr_len;
    } on[] = {
        [OB1_STREAM_DATA] = {ob1_on_stream_data, sizeof(struct wire_stream_data)},
        [OB1_DATA] = {ob1_on_data, sizeof(struct wire_data)},
        [OB1_ACK] = {ob1_on_ack, sizeof(struct wire_control)},
        [OB1_FIN] = {ob1_on_fin, sizeof(struct wire_control)},
        [OB1_CTS] = {ob1_on_cts, sizeof(struct wire_request)},
        [OB1_THROTTLE] = {ob1_on_throttle, sizeof(struct wire_control)},
        [OB1_PUT] = {ob1_on_put, sizeof(struct wire_put)},
        [OB1_BATCH] = {ob1_on_batch, sizeof(struct wire_batch)},
    };
    union wire_any h = {0};
    struct ob1_peer *peer;

    /* What a failed peer's transport still brings: its requests have ended, so nothing may begin anew. */
    if (ST_UNLIKELY(pml->head.worker->n_failed != 0) && ob1_peer_find(pml, frag->rank, &peer) == STRATA_OK &&
        peer->shared->failed) {
        return;
    }
    if (frag->hdr_len) /* once: the sender may change it */
        memcpy(&h, frag->hdr, frag->hdr_len < sizeof(h) ? frag->hdr_len : sizeof(h));
    if (h.type >= OB1_EAGER && h.type <= OB1_LAST_MATCHED)
        ob1_matched_type(pml, frag);
    else if (h.type >= sizeof(on) / sizeof(on[0]) || !on[h.type].fn)
        ob1_protocol_error(pml, frag, "unknown type");
    else if (frag->hdr_len < on[h.type].hdr_len)
        ob1_protocol_error(pml, frag, "malformed header");
    else
        on[h.type].fn(pml, frag, &h);
}
