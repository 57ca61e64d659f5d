/* Rendezvous: what both sides share. The receiver decides how each range is fetched; the sender counts the bytes that
 * are done with (sent, put, reported as pulled or as not wanted) and is complete when that is all of them. */
#include <strata/sdk/btl_rdma.h>
#include "answers.h"
#include "choose.h"
#include "control.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "rndv.h"
#include "send.h"
#include "send_way.h"
#include "task.h"
#include "wire.h"

/* Fetching begins when we are connected to the sender: from progress, when it was only heard from so far. */
static int ob1_rndv_begin_run(void *arg, struct st_work *w)
{
    struct ob1 *pml = arg;
    struct ob1_task *t = ST_CONTAINER(w, struct ob1_task, work);
    struct ob1_req *req = t->req;

    if (!req->failed)
        ob1_fetch(pml, req, t->next, t->end - t->next);
    ob1_task_free(pml, t);
    return STRATA_OK;
}

static const struct st_work_ops begin_work = {ST_AM_PML, ob1_rndv_begin_run, ob1_task_drop};

void ob1_rndv_begin(struct ob1 *pml, struct ob1_req *req, const struct ob1_arrival *a)
{
    struct ob1_peer *peer = req->peer;
    struct ob1_task *t;

    req->sender_id = a->id;
    req->address = a->flags & OB1_F_EXPOSED ? a->address : 0;
    req->offer = a->flags;
    req->found = !pml->tells ? OB1_FOUND_NOTHING : a->found ? a->found : OB1_FOUND_POSTED;
    req->key_btl = a->btl;
    if (a->flags & OB1_F_KEY)
        memcpy(req->key, a->data, ST_BTL_KEY_MAX);
    if (peer->shared->failed) {
        ob1_req_fail(pml, req, peer->shared->failed);
        return;
    }
    if (a->length > req->expect) /* what there is no room for is done with */
        ob1_control_answer(pml, req, 0, a->length - req->expect, STRATA_OK);
    if (req->expect == 0) {
        ob1_req_end(pml, req);
        return;
    }
    t = ob1_req_name(pml, req, OB1_ID_RECV) == STRATA_OK
            ? ob1_task_make(pml, req, 0, &begin_work, false, 0, req->expect)
            : NULL;
    if (!t) {
        ob1_control_answer(pml, req, 0, req->expect, STRATA_ERR_NOMEM);
        ob1_req_fail(pml, req, STRATA_ERR_NOMEM);
        return;
    }
    ob1_task_go(pml, t);
}

static struct ob1_req *ob1_rndv_find_send(struct ob1 *pml, const struct st_frag *frag, uint64_t id)
{
    struct ob1_req *req = st_wire_id_find(&pml->ids, OB1_ID_SEND, id);

    if (!req || req->peer->shared->rank != frag->rank) {
        ob1_protocol_error(pml, frag, "answer to a message that is not under way");
        return NULL;
    }
    return req;
}

void ob1_request_refuse(struct ob1 *pml, const struct st_frag *frag, const struct wire_request *h, int status)
{
    const struct st_peer *shared = st_worker_peer_known(pml->head.worker, frag->rank);
    struct ob1_peer *peer = shared ? ob1_peer_of(shared) : NULL;

    if (peer && shared->bml) /* else nothing was ever sent there */
        ob1_control_fin(pml, peer, 0, OB1_FIN, h->answer, 0, status);
}

struct ob1_req *ob1_request_to(struct ob1 *pml, const struct st_frag *frag, const struct wire_request *h)
{
    struct ob1_req *req = ob1_rndv_find_send(pml, frag, h->id);

    /* The receiver's request and the failure may have crossed: it waits for an answer to either. */
    if (!req || req->failed) {
        ob1_request_refuse(pml, frag, h, req ? req->head.status.error : STRATA_ERR_SYSTEM);
        return NULL;
    }
    if (h->length == 0 || h->offset > req->data.length || h->length > req->data.length - h->offset ||
        req->protocol < OB1_P_RNDV) {
        ob1_protocol_error(pml, frag, "request for bytes that the message does not have");
        return NULL;
    }
    ob1_send_heard(req, h->found);
    return req;
}

void ob1_on_ack(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct ob1_req *req = ob1_rndv_find_send(pml, frag, h->control.id);

    if (!req)
        return;
    if (req->protocol != OB1_P_EAGER_SYNC)
        ob1_protocol_error(pml, frag, "acknowledgement of a message that asked for none");
    else
        ob1_send_moved(pml, req, req->data.length);
}

static void ob1_rndv_done_with(struct ob1 *pml, const struct st_frag *frag, uint64_t id, uint64_t bytes, int status,
                               uint8_t found)
{
    struct ob1_piece *piece = st_wire_id_find(&pml->ids, OB1_ID_PUT, id);
    struct ob1_req *req;

    if (piece) {
        if (piece->task->peer->shared->rank == frag->rank)
            ob1_put_answered(pml, piece, status, bytes);
        return;
    }
    req = st_wire_id_find(&pml->ids, OB1_ID_RECV, id);
    if (req) { /* the sender cannot go on */
        if (req->peer->shared->rank == frag->rank && status != STRATA_OK)
            ob1_req_fail(pml, req, status);
        return;
    }
    req = ob1_rndv_find_send(pml, frag, id);
    if (!req)
        return;
    ob1_send_heard(req, found);
    if (bytes > req->data.length - req->done)
        ob1_protocol_error(pml, frag, "more bytes done with than there are");
    else if (status != STRATA_OK)
        ob1_req_fail(pml, req, status);
    else
        ob1_send_moved(pml, req, bytes);
}

void ob1_on_fin(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    struct wire_fin more;

    if (frag->len % sizeof(more) != 0) {
        ob1_protocol_error(pml, frag, "malformed report");
        return;
    }
    ob1_rndv_done_with(pml, frag, h->control.id, h->control.bytes, h->control.status, h->control.found);
    for (size_t at = 0; at < frag->len; at += sizeof(more)) {
        memcpy(&more, (const char *)frag->data + at, sizeof(more));
        ob1_rndv_done_with(pml, frag, more.id, more.bytes, STRATA_OK, OB1_FOUND_NOTHING);
    }
}
